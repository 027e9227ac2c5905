// The header of kzero's files of documents (docs/data.md has the format): 256 bytes, then where
// each document begins, then the tokens with their marks. Accesses no files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"

namespace kzero::data {

inline constexpr Index document_header_bytes = 256;

/// Returns whether a file's first bytes are those of a file of documents.
bool is_document_file(std::span<const std::byte> head);

/// The tokens and documents of a file.
struct DocumentCounts {
  Index tokens = 0;
  Index documents = 0;

  /// The bytes before the first token.
  Index token_offset() const { return document_header_bytes + 8 * (documents + 1); }
};

/// Returns what the header counts. `head` has a file's first bytes: as many as a header has, or
/// all. Throws Error(files), naming `path`, if they are not a supported header, or if the file's
/// size, `bytes`, differs from the size in the header.
DocumentCounts document_counts(const std::string& path, std::span<const std::byte> head,
                               Index bytes);

}  // namespace kzero::data
