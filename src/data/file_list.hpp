// Expands the paths and patterns of the deck into files.
#pragma once

#include <string>
#include <vector>

#include "base/problem_list.hpp"

namespace kzero::data {

/// Returns the files named by a list of paths and patterns. The matches of each pattern are sorted;
/// duplicates are kept at their first position. In a pattern, `*` and `?` match other characters of
/// one name, and every other character matches itself. An existing file with exactly the entry's
/// name takes precedence over matches. Folders among the matches are skipped. A pattern without a
/// match becomes a problem. Whether a path without wildcards exists is not checked.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns,
                                      ProblemList& problems);

}  // namespace kzero::data
