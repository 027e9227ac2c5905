// One file of documents: its header, its documents, and reading from it. As with token files, the
// file is read, never mapped. It is independent of packing and ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "data/open_files.hpp"
#include "deck/config.hpp"

namespace kzero::data {

// The header of kzero's files of documents (docs/data.md has the format): 256 bytes, then where
// each document begins, then their weights if they have any, then the tokens with their marks.
// Accesses no files.

inline constexpr Index document_header_bytes = 256;

/// Return whether a file's first bytes are those of a file of documents, or of pairs of documents.
bool is_document_file(std::span<const std::byte> head);
bool is_pair_file(std::span<const std::byte> head);

/// The tokens and documents of a file.
struct DocumentCounts {
  Index tokens = 0;
  Index documents = 0;
  bool is_paired = false;    // documents 2i and 2i + 1 are a chosen and a rejected answer
  bool is_weighted = false;  // each document has a weight

  /// The bytes before the first weight, and before the first token.
  Index weight_offset() const { return document_header_bytes + 8 * (documents + 1); }
  Index token_offset() const { return weight_offset() + (is_weighted ? 4 * documents : 0); }
};

/// Returns what the header counts. `head` has a file's first bytes: as many as a header has, or
/// all. Throws Error(files), naming `path`, if they are not a supported header, or if the file's
/// size, `bytes`, differs from the size in the header.
DocumentCounts document_counts(const std::string& path, std::span<const std::byte> head,
                               Index bytes);

/// The documents of a file: where each begins, in tokens, then the end; the number of targets of
/// each; the weight of each, unless the file has none; and a digest of all tokens and their marks.
struct DocumentTable {
  std::vector<Index> starts;
  std::vector<std::uint32_t> targets;
  std::vector<float> weights;
  std::uint64_t content = 0;
};

/// A file of documents, opened whenever it is read (see DataFile). All errors are Error(files) and
/// name the path. Reading is thread-safe.
class DocumentFile {
 public:
  /// Throws if the path is not a regular file, cannot be opened, or has no header of this format,
  /// which is that of documents or of pairs.
  DocumentFile(const std::string& path, deck::DataFormat format);

  const std::string& path() const { return file_.path(); }
  Index documents() const { return counts_.documents; }
  bool is_paired() const { return counts_.is_paired; }

  /// Reads the file once. Throws, naming file and document, if documents are not in order, one, or
  /// a pair, has more than `sequence` tokens, a token is `vocab` or more, a first token is a
  /// target, a weight is not finite, or a document of a pair has no target.
  DocumentTable scan(Index sequence, Index vocab) const;

  /// Reads the document that begins at token `begin` and has `count` tokens: inputs [count] and the
  /// target of each, no_target where there is none. Allocates nothing. Throws if the file changed
  /// since it was opened: it is shorter, has a token of `vocab` or more, or other than `expected`
  /// targets.
  void read(Index begin, Index count, Index vocab, Index expected, Token* inputs,
            Token* targets) const;

  /// A digest of the name without folders, the size and the header.
  std::uint64_t digest() const { return file_.digest(header_digest_); }

 private:
  std::vector<Index> read_starts() const;
  std::vector<float> read_weights() const;
  void check_lengths(std::span<const Index> starts, Index sequence) const;
  void check_pairs(const DocumentTable& table, Index sequence) const;
  template <class Stored>
  void load(std::span<Stored> values, Index offset) const;

  DataFile file_;
  Index bytes_ = 0;
  DocumentCounts counts_;
  std::uint64_t header_digest_ = 0;
};

}  // namespace kzero::data
