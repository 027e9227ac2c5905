// Expands the paths and patterns of the deck into files.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/problem_list.hpp"
#include "base/types.hpp"

namespace kzero::data {

/// Returns the files named by a list of paths and patterns. The matches of each pattern are sorted;
/// duplicates are kept at their first position. In a pattern, `*` and `?` match other characters of
/// one name, and every other character matches itself. An existing file with exactly the entry's
/// name takes precedence over matches. Folders among the matches are skipped. A pattern without a
/// match becomes a problem. Whether a path without wildcards exists is not checked.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns,
                                      ProblemList& problems);

// Faults that data files of every format may have.

/// Describes why a file could not be opened, with advice; `problem` is errno.
std::string reason_of(int problem, const std::string& path);

/// Throws Error(files) unless the mode is that of a regular file.
void require_regular(const std::string& path, mode_t mode);

/// Advice for a file whose largest token is `largest_token`, beyond the vocabulary.
std::string vocabulary_advice(Index largest_token);

}  // namespace kzero::data
