// Token files mapped into memory and strung together to one stream in the order of their list.
// Knows file formats; does not know windows, batches or ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// The files that a list of paths and globs names: each glob's matches sorted, duplicates kept once
/// at their first place. Throws Error(files) naming an entry that matches no regular file.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns);

/// A read-only stream of tokens over one or more files. Reading is safe from several threads.
class TokenStream {
 public:
  /// Maps the files that `patterns` names, relative ones from the working directory. Throws
  /// Error(files) naming the file that is missing or breaks its format.
  TokenStream(const std::vector<std::string>& patterns, deck::DataFormat format);
  ~TokenStream();
  TokenStream(const TokenStream&) = delete;
  TokenStream& operator=(const TokenStream&) = delete;

  Index size() const { return starts_.back(); }  // tokens
  Index file_count() const { return static_cast<Index>(files_.size()); }

  /// Copies tokens [begin, begin + count) to out.
  void read(Index begin, Index count, Token* out) const;

  /// Of the files' names without folders, sizes and headers, in order: tells whether a restart
  /// reads what the first run read, also after the files moved, without reading them whole.
  std::uint64_t digest() const;

  /// Reads tokens [begin, begin + count) once and throws Error(files) naming file, position and
  /// value of the largest one in the first file that has a token of `vocab` or more. Ranks may
  /// share the work.
  void check_tokens(Index vocab, Index begin, Index count) const;

 private:
  class File;

  template <class Visit>
  void for_each_piece(Index begin, Index count, Visit&& visit) const;

  deck::DataFormat format_;
  std::vector<std::unique_ptr<File>> files_;
  std::vector<Index> starts_;  // of each file in the stream, and the end
};

}  // namespace kzero::data
