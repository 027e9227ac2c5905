// The index files of Megatron-LM's datasets, as megatron/core/datasets/indexed_dataset.py of
// Megatron-LM writes them: FILE.idx describes the documents whose tokens FILE.bin holds.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "data/token_layout.hpp"

namespace kzero::data {

/// Returns whether a file's first bytes are those of an index.
bool is_megatron_index(std::span<const std::byte> head);

/// The index that belongs to a file of tokens: FILE.idx for FILE.bin.
std::filesystem::path megatron_index_of(const std::filesystem::path& tokens);

/// Returns the layout of the tokens in `path`, a file of `bytes` bytes. Reads the index that
/// belongs to it, in chunks. Throws Error(files) naming the index if there is none, if it is not a
/// regular file, if it breaks the format, if its tokens are not integers of 8, 16 or 32 bits, or if
/// its sequences are not the bytes of a file of that size, each once and in order.
TokenLayout megatron_layout(const std::string& path, Index bytes);

}  // namespace kzero::data
