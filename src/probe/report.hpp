// A survey of a launch as text for people and as JSON.
#pragma once

#include <string>

#include "probe/survey.hpp"

namespace kzero::probe {

inline constexpr int max_rows = 16;

/// Returns the differences, a table of nodes, the odd places, and the verdict as the last line. If
/// there are more than `rows` nodes, the table has only the odd ones, and the median, best and
/// worst figures of all.
std::string text(const Survey& survey, const grid::Nodes& nodes, int rows = max_rows);

/// Returns the entire survey with the figures of all nodes and links, in SI units. docs/cluster.md
/// lists the keys.
std::string json_text(const Survey& survey, const grid::Nodes& nodes);

/// Describes the launch in one line: whether its ranks can form one run, and which places are odd.
std::string verdict(const Survey& survey, const grid::Nodes& nodes);

}  // namespace kzero::probe
