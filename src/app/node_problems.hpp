// Merges the problems that all ranks of a launch found in files into one list. If only some nodes
// have a problem, the list names them: a node may lack a file system, a file or space.
#pragma once

#include <string>
#include <vector>

#include "base/problem_list.hpp"

namespace kzero::app {

/// The problems of one rank and the name of its node, as bytes to send.
std::string pack(const std::string& host, const ProblemList& problems);

/// Merges the results of pack() on all ranks. The first text of each subject counts.
ProblemList merged(const std::vector<std::string>& of_ranks);

}  // namespace kzero::app
