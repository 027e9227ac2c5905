// The problems that all ranks of a launch found in files, as one list that names the nodes of those
// that not every node has: one may lack a file system, a file or room.
#pragma once

#include <string>
#include <vector>

#include "base/problem_list.hpp"

namespace kzero::app {

/// The problems of one rank and the name of its node, as bytes to send.
std::string pack(const std::string& host, const ProblemList& problems);

/// Merges what pack() returned on each rank. The first text of each subject counts.
ProblemList merged(const std::vector<std::string>& of_ranks);

}  // namespace kzero::app
