// Which files the deck's paths and patterns name.
#pragma once

#include <string>
#include <vector>

#include "base/problem_list.hpp"

namespace kzero::data {

/// The files that a list of paths and patterns names: the matches of each pattern sorted,
/// duplicates kept once at their first place. In a pattern `*` and `?` stand for other characters
/// of one name and every other character for itself; a file that exists under an entry's very name
/// is meant before any match. Folders among the matches are skipped. A pattern without a match
/// becomes a problem; whether a path without wildcards exists is not looked at.
std::vector<std::string> expand_files(const std::vector<std::string>& patterns,
                                      ProblemList& problems);

}  // namespace kzero::data
