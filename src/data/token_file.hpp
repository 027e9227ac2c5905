// One token file: its format, and reading from it. Files are read, never mapped. If a file is
// truncated or overwritten while a run uses it, the run ends with a message that names it; a
// mapping would end in SIGBUS. It is independent of streams, windows and ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"
#include "data/formats.hpp"
#include "data/open_files.hpp"

namespace kzero::data {

/// A token file, opened whenever it is read (see DataFile). All errors are Error(files) and name
/// the path. Reading is thread-safe.
class TokenFile {
 public:
  /// Throws if the path is not a regular file, cannot be opened, breaks the format, or looks like a
  /// token file of another format.
  TokenFile(const std::string& path, TokenEncoding encoding);

  const std::string& path() const { return file_.path(); }
  Index count() const { return layout_.count; }  // tokens

  /// Copies tokens [begin, begin + count) to `out`. Allocates nothing. Throws, naming the position,
  /// if the file has become shorter, or contains a token that is negative or at least `vocab`.
  void read(Index begin, Index count, Index vocab, Token* out) const;

  /// Reads tokens [begin, begin + count) once, unless no token of their width can be `vocab` or
  /// more. Throws if one is, naming the position and value of the first and the vocabulary size
  /// that all of them need.
  void check(Index begin, Index count, Index vocab) const;

  /// A digest of the name without folders, the size and the header.
  std::uint64_t digest() const { return file_.digest(header_digest_); }

 private:
  void read_head();
  [[noreturn]] void refuse_to_open(int problem) const;
  std::uint64_t head_digest(std::span<const std::byte> head) const;

  template <class Stored>
  void load_tokens(Index begin, std::span<Stored> tokens) const;
  Index bound(Index vocab) const;
  Index shown(Index token) const;
  template <class Stored>
  void read_as(Index begin, Index count, Index vocab, Token* out) const;
  template <class Stored>
  void check_as(Index begin, Index count, Index vocab) const;

  DataFile file_;
  TokenEncoding encoding_;
  Index bytes_ = 0;
  TokenLayout layout_;
  std::uint64_t header_digest_ = 0;
};

}  // namespace kzero::data
