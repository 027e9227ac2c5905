// The index files of Megatron-LM's datasets, as megatron/core/datasets/indexed_dataset.py of
// Megatron-LM writes them: FILE.idx describes the documents whose tokens are in FILE.bin.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "data/formats.hpp"

namespace kzero::data {

/// Returns whether a file's first bytes are those of an index.
bool is_megatron_index(std::span<const std::byte> head);

/// The index of a file of tokens: FILE.idx for FILE.bin.
std::filesystem::path megatron_index_of(const std::filesystem::path& tokens);

/// The layout of the tokens in a file (Format::layout). Reads its index in chunks. Throws
/// Error(files) naming the index if it is missing, is not a regular file or breaks the format, if
/// its tokens are not integers of 8, 16 or 32 bits, or if its sequences do not cover the bytes of
/// the file once and in order.
TokenLayout megatron_layout(const OpenedFile& tokens, Index raw_bytes);

}  // namespace kzero::data
