// The headers of llm.c's token files, as dev/data/data_common.py of llm.c writes them: 256 int32,
// which begin with a magic number, a version and the number of tokens. Accesses no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"
#include "data/token_layout.hpp"

namespace kzero::data {

/// One of the two kinds of llm.c's token files: for the tokenizers of GPT-2 and of Llama 3.
struct LlmcKind {
  std::int32_t magic, version;
  Index width;  // bytes of a token
};

inline constexpr Index llmc_header_bytes = 256 * 4;

/// Returns the kind that has a file's first bytes as its magic number; null if there is none.
const LlmcKind* llmc_kind(std::span<const std::byte> head);

/// Returns the layout of a file of `bytes` bytes from its first bytes, `head`: as many as a header
/// has, or all. Throws Error(files), naming `path`, if they are not a supported header, or if the
/// file's size differs from the size in the header.
TokenLayout llmc_layout(const std::string& path, std::span<const std::byte> head, Index bytes);

}  // namespace kzero::data
