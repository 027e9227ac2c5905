#include "base/checksum.hpp"

#include <fmt/format.h>
#include <xxhash.h>

#include <fstream>
#include <memory>
#include <vector>

#include "base/error.hpp"

namespace kzero {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

std::uint64_t checksum_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  KZERO_REQUIRE(file, ExitCode::files, "{}: cannot be opened for reading", path.string());
  const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(XXH3_createState(),
                                                                       &XXH3_freeState);
  XXH3_64bits_reset(state.get());
  std::vector<char> piece(std::size_t{1} << 22);
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    XXH3_64bits_update(state.get(), piece.data(), static_cast<std::size_t>(file.gcount()));
  }
  KZERO_REQUIRE(file.eof(), ExitCode::files, "{}: reading failed", path.string());
  return XXH3_64bits_digest(state.get());
}

std::string format_checksum(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace kzero
