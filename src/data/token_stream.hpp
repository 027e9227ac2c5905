// Token files concatenated to one stream in the order of their list. It is independent of formats,
// windows and ranks.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/problem_list.hpp"
#include "base/types.hpp"
#include "data/data_files.hpp"
#include "data/token_file.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// A read-only stream of tokens below `vocab` over one or more files. Reading is thread-safe.
class TokenStream : public DataFiles {
 public:
  /// Opens the files named by `patterns` (see expand_files); relative ones start from the working
  /// directory. Throws Error(files) with everything that is wrong with them.
  TokenStream(const std::vector<std::string>& patterns, TokenEncoding encoding, Index vocab);

  /// Opens the files as above, but adds to `problems` instead of throwing. Bad files are left out
  /// of the stream.
  TokenStream(const std::vector<std::string>& patterns, TokenEncoding encoding, Index vocab,
              ProblemList& problems);

  Index size() const override { return starts_.back(); }  // tokens
  Index file_count() const override { return static_cast<Index>(files_.size()); }

  /// Copies tokens [begin, begin + count) to out. Allocates nothing. Throws Error(files) naming
  /// file and position if a file was truncated, or overwritten with tokens of `vocab` or more.
  void read(Index begin, Index count, Token* out) const;

  /// A digest of the files' names without folders, sizes and headers, in order. It tells whether a
  /// restart reads the same data as the first run, even if the files have moved, without reading
  /// their contents.
  std::uint64_t digest() const override;

  std::uint64_t content_sum(Index part, Index parts) const override;

  /// Reads one of `parts` equal parts of each file once. Adds files that have a token of `vocab` or
  /// more in that part to `problems`, with the position and value of the first.
  void check_tokens(Index part, Index parts, ProblemList& problems) const override;

 private:
  void open(const std::vector<std::string>& patterns, TokenEncoding encoding,
            ProblemList& problems);

  Index vocab_;
  std::vector<std::unique_ptr<TokenFile>> files_;
  std::vector<Index> starts_{0};  // of each file in the stream, and the end
};

}  // namespace kzero::data
