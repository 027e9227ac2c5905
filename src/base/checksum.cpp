#include "base/checksum.hpp"

#include <fmt/format.h>

#ifndef __clang__  // gcc 12 sees an uninitialized value in its own intrinsics, which xxHash inlines
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <xxhash.h>

#include <fstream>
#include <vector>

#include "base/error.hpp"

namespace kzero {

std::uint64_t checksum(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Digest::Digest() : state_(XXH3_createState()) {
  XXH3_64bits_reset(static_cast<XXH3_state_t*>(state_.get()));
}

void Digest::update(std::span<const std::byte> bytes) {
  XXH3_64bits_update(static_cast<XXH3_state_t*>(state_.get()), bytes.data(), bytes.size());
}

std::uint64_t Digest::value() const {
  return XXH3_64bits_digest(static_cast<const XXH3_state_t*>(state_.get()));
}

void Digest::Free::operator()(void* state) const {
  XXH3_freeState(static_cast<XXH3_state_t*>(state));
}

std::uint64_t checksum_of_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  KZERO_REQUIRE(file, ExitCode::files, "{}: cannot be opened for reading", path.string());
  Digest digest;
  std::vector<char> chunk(std::size_t{1} << 22);
  while (file) {
    file.read(chunk.data(), static_cast<std::streamsize>(chunk.size()));
    digest.update(std::as_bytes(std::span(chunk).first(static_cast<std::size_t>(file.gcount()))));
  }
  KZERO_REQUIRE(file.eof(), ExitCode::files, "{}: reading failed", path.string());
  return digest.value();
}

std::string format_checksum(std::uint64_t digest) { return fmt::format("{:016x}", digest); }

}  // namespace kzero
