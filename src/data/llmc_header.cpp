#include "data/llmc_header.hpp"

#include <array>
#include <cstring>

#include "base/error.hpp"

namespace kzero::data {

namespace {

constexpr LlmcKind kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr std::size_t magic_bytes = sizeof kinds[0].magic;

}  // namespace

const LlmcKind* llmc_kind(std::span<const std::byte> head) {
  if (head.size() < magic_bytes) return nullptr;
  for (const LlmcKind& kind : kinds) {
    if (std::memcmp(head.data(), &kind.magic, magic_bytes) == 0) return &kind;
  }
  return nullptr;
}

TokenLayout llmc_layout(const std::string& path, std::span<const std::byte> head, Index bytes) {
  KZERO_REQUIRE(head.size() >= llmc_header_bytes, ExitCode::files,
                "{}: {} bytes are too short for the {} byte header of format \"llmc\"", path, bytes,
                llmc_header_bytes);
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), head.data(), sizeof header);
  const LlmcKind* kind = llmc_kind(head);
  KZERO_REQUIRE(
      kind != nullptr, ExitCode::files,
      "{}: starts with {}, but a file of format \"llmc\" has a header of {} bytes before its "
      "tokens: {} and {} for 16-bit tokens or {} and {} for 32-bit tokens, the number of tokens, "
      "all as 32-bit integers, and then zeros",
      path, header[0], llmc_header_bytes, kinds[0].magic, kinds[0].version, kinds[1].magic,
      kinds[1].version);
  KZERO_REQUIRE(header[1] == kind->version, ExitCode::files,
                "{}: is version {} of format \"llmc\" with {}-bit tokens, but only version {} is "
                "read",
                path, header[1], 8 * kind->width, kind->version);
  TokenLayout layout{llmc_header_bytes, kind->width, header[2]};
  const Index expected = layout.offset + layout.width * layout.count;
  KZERO_REQUIRE(layout.count >= 0 && bytes == expected, ExitCode::files,
                "{}: its header counts {} tokens of {} bytes, which makes {} bytes, but the file "
                "has {}; it is truncated or damaged: write it again",
                path, layout.count, layout.width, expected, bytes);
  return layout;
}

}  // namespace kzero::data
