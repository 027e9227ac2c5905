// The headers of llm.c's token files, as dev/data/data_common.py of llm.c writes them: 256 int32,
// which begin with a magic number, a version and the number of tokens. Accesses no files.
#pragma once

#include <cstddef>
#include <span>

#include "base/types.hpp"
#include "data/formats.hpp"

namespace kzero::data {

inline constexpr Index llmc_header_bytes = 256 * 4;

/// Returns whether a file's first bytes are those of a token file.
bool is_llmc_file(std::span<const std::byte> head);

/// The layout of a token file (Format::layout). It is an error if the file does not begin with a
/// supported header, or if its size differs from the size in the header.
TokenLayout llmc_layout(const OpenedFile& file, Index raw_bytes);

}  // namespace kzero::data
