// The headers of llm.c's token files, as dev/data/data_common.py of llm.c writes them: 256 int32,
// of which the first are a magic number, a version and the number of tokens. It reads no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"
#include "data/token_layout.hpp"

namespace kzero::data {

/// One of the two kinds of llm.c's token files: for GPT-2's tokenizer, and for Llama 3's.
struct LlmcKind {
  std::int32_t magic, version;
  Index width;  // bytes of a token
};

inline constexpr Index llmc_header_bytes = 256 * 4;

/// Returns the kind whose magic number a file's first bytes are; null if there is none.
const LlmcKind* llmc_kind(std::span<const std::byte> head);

/// Returns the layout of a file of `bytes` bytes by the first of them, `head`: as many as a header
/// has, or all. Throws Error(files), naming `path`, if they are no header that is read, or if the
/// file has another size than its header says.
TokenLayout llmc_layout(const std::string& path, std::span<const std::byte> head, Index bytes);

}  // namespace kzero::data
