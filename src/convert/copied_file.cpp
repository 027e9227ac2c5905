#include "convert/copied_file.hpp"

#include <algorithm>
#include <vector>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "storage/atomic_file.hpp"

namespace kzero::convert {

namespace {

constexpr std::size_t part_bytes = std::size_t{1} << 20;

/// The part of a file from `offset` on; empty at its end.
std::span<const std::byte> read_part(const InputFile& file, Index offset,
                                     std::vector<std::byte>& memory) {
  memory.resize(part_bytes);
  return std::span(memory).first(static_cast<std::size_t>(file.read(offset, memory)));
}

}  // namespace

bool has_same_bytes(const std::filesystem::path& a, const std::filesystem::path& b) {
  try {
    const InputFile first(a), second(b);
    std::vector<std::byte> x, y;
    for (Index at = 0;;) {
      const auto one = read_part(first, at, x), other = read_part(second, at, y);
      if (!std::ranges::equal(one, other)) return false;
      if (one.empty()) return true;
      at += static_cast<Index>(one.size());
    }
  } catch (const Error&) {
    return false;
  }
}

void copy_durably(const std::filesystem::path& from, const std::filesystem::path& to) {
  const InputFile source(from);
  storage::AtomicFile copy(to);
  std::vector<std::byte> memory;
  for (Index at = 0;;) {
    const auto part = read_part(source, at, memory);
    if (part.empty()) break;
    copy.append(part);
    at += static_cast<Index>(part.size());
  }
  copy.finish();
}

}  // namespace kzero::convert
