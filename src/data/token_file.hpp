// One token file: its format, and reading from it. Files are read, never mapped: a file that is
// truncated or overwritten while a run uses it then ends the run with a message that names it,
// where a mapping would end in SIGBUS. It does not know streams, windows or ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/types.hpp"
#include "data/token_layout.hpp"

namespace kzero::data {

/// A token file, open for reading as long as the object lives. All errors are Error(files) and name
/// the path. Reading is thread-safe.
class TokenFile {
 public:
  /// Throws if the path is no regular file, cannot be opened, breaks the format, or looks like a
  /// token file of another format.
  TokenFile(std::string path, TokenEncoding encoding);
  ~TokenFile();
  TokenFile(const TokenFile&) = delete;
  TokenFile& operator=(const TokenFile&) = delete;

  const std::string& path() const { return path_; }
  Index count() const { return layout_.count; }  // tokens

  /// Copies tokens [begin, begin + count) to `out`. Allocates nothing. Throws, naming the position,
  /// if the file has become shorter or holds a token of `vocab` or more, or a negative one.
  void read(Index begin, Index count, Index vocab, Token* out) const;

  /// Reads tokens [begin, begin + count) once, unless none of their width can be `vocab` or more.
  /// Throws if one is, naming position and value of the first and the vocabulary that all need.
  void check(Index begin, Index count, Index vocab) const;

  /// A digest of the name without folders, the size and the header.
  std::uint64_t digest() const;

 private:
  void open();
  void read_head();
  TokenLayout layout_by(std::span<const std::byte> head) const;
  std::uint64_t head_digest(std::span<const std::byte> head) const;
  Index load(std::span<std::byte> bytes, Index offset) const;

  template <class Stored>
  void load_tokens(Index begin, std::span<Stored> tokens) const;
  Index bound(Index vocab) const;
  Index shown(Index token) const;
  template <class Stored>
  void read_as(Index begin, Index count, Index vocab, Token* out) const;
  template <class Stored>
  void check_as(Index begin, Index count, Index vocab) const;

  std::string path_;
  TokenEncoding encoding_;
  int descriptor_ = -1;
  Index bytes_ = 0;
  TokenLayout layout_;
  std::uint64_t header_digest_ = 0;
};

}  // namespace kzero::data
