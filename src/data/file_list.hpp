// Expands the paths and patterns of the deck into files.
#pragma once

#include <string>
#include <vector>

#include "base/problem_list.hpp"

namespace kzero::data {

/// Returns the files that a list of paths and patterns names: the matches of each pattern sorted,
/// duplicates kept at their first position. In a pattern `*` and `?` stand for other characters of
/// one name and every other character for itself; an existing file whose name is literally the
/// entry takes precedence over matches. Folders among the matches are skipped. A pattern without a
/// match becomes a problem; whether a path without wildcards exists is not checked.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns,
                                      ProblemList& problems);

}  // namespace kzero::data
