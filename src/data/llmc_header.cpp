#include "data/llmc_header.hpp"

#include <array>
#include <cstdint>
#include <cstring>

#include "base/error.hpp"

namespace kzero::data {

namespace {

/// One of the two kinds of llm.c's token files: for the tokenizers of GPT-2 and of Llama 3.
struct LlmcKind {
  std::int32_t magic, version;
  Index width;  // bytes of a token
};

constexpr LlmcKind kinds[] = {{20240520, 1, 2}, {20240801, 7, 4}};
constexpr std::size_t magic_bytes = sizeof kinds[0].magic;

/// The kind that has a file's first bytes as its magic number; null if there is none.
const LlmcKind* kind_of(std::span<const std::byte> head) {
  if (head.size() < magic_bytes) return nullptr;
  for (const LlmcKind& kind : kinds) {
    if (std::memcmp(head.data(), &kind.magic, magic_bytes) == 0) return &kind;
  }
  return nullptr;
}

}  // namespace

bool is_llmc_file(std::span<const std::byte> head) { return kind_of(head) != nullptr; }

TokenLayout llmc_layout(const OpenedFile& file, Index /*raw_bytes*/) {
  const auto& [path, head, bytes] = file;
  KZERO_REQUIRE(head.size() >= llmc_header_bytes, ExitCode::files,
                "{}: {} bytes are too short for the {} byte header of format \"llmc\"", path, bytes,
                llmc_header_bytes);
  std::array<std::int32_t, 3> header{};
  std::memcpy(header.data(), head.data(), sizeof header);
  const LlmcKind* kind = kind_of(head);
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
