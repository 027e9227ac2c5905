// The files of one source, as far as checks, digests and reports need them.
#pragma once

#include <cstdint>

#include "base/problem_list.hpp"
#include "base/types.hpp"

namespace kzero::data {

class DataFiles {
 public:
  DataFiles() = default;
  DataFiles(const DataFiles&) = delete;
  DataFiles(DataFiles&&) = delete;
  DataFiles& operator=(const DataFiles&) = delete;
  DataFiles& operator=(DataFiles&&) = delete;
  virtual ~DataFiles() = default;

  virtual Index size() const = 0;  // tokens
  virtual Index file_count() const = 0;

  /// A digest of the files. It tells whether a restart reads the same data as the first run, even
  /// if the files have moved.
  virtual std::uint64_t digest() const = 0;

  /// Returns a summand of a digest of all tokens, whatever the files' names and format. The sum of
  /// `parts` parts, modulo 2^64, is the same for any number of them. Reads that part of the files.
  virtual std::uint64_t content_sum(Index part, Index parts) const = 0;

  /// Checks one of `parts` equal parts of each file, as far as opening it did not. Adds bad files
  /// to `problems`.
  virtual void check_tokens(Index part, Index parts, ProblemList& problems) const = 0;
};

}  // namespace kzero::data
