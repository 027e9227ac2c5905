// A survey of a launch as text for people and as JSON.
#pragma once

#include <string>

#include "probe/survey.hpp"

namespace kzero::probe {

inline constexpr int most_rows = 16;

/// Returns the differences, a table of nodes, the odd places, and the verdict as the last line. For
/// more nodes than `rows`, the table lists the odd ones, and the median, best and worst figures.
std::string text(const Survey& survey, const grid::Nodes& nodes, int rows = most_rows);

/// Returns everything, including the figures of all nodes and links, in SI units. docs/cluster.md
/// lists the keys.
std::string json_text(const Survey& survey, const grid::Nodes& nodes);

/// Summarizes the launch in one line: whether its ranks can be one run, and which places are odd.
std::string verdict(const Survey& survey, const grid::Nodes& nodes);

}  // namespace kzero::probe
