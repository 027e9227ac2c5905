// A survey of a launch as text for people and as JSON.
#pragma once

#include <string>

#include "probe/survey.hpp"

namespace kzero::probe {

inline constexpr int most_rows = 16;

/// What differs, a table of nodes, what is odd, and the verdict as the last line. Of more nodes
/// than `rows` the table has the odd ones, and the median, best and worst figures of all.
std::string text(const Survey& survey, const grid::Nodes& nodes, int rows = most_rows);

/// Everything, figures of all nodes and links included, in SI units. docs/cluster.md has the keys.
std::string json_text(const Survey& survey, const grid::Nodes& nodes);

/// The launch in one line: whether its ranks can be one run, and which places are odd.
std::string verdict(const Survey& survey, const grid::Nodes& nodes);

}  // namespace kzero::probe
