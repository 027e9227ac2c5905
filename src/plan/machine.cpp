#include "plan/machine.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <iterator>
#include <vector>

#include "base/error.hpp"

namespace kzero::plan {

double Machine::attained_at(Index width) const {
  if (attained.empty()) return 1;
  const auto above = attained.lower_bound(width);
  if (above == attained.end()) return attained.rbegin()->second;
  if (above == attained.begin() || above->first == width) return above->second;
  const auto below = std::prev(above);
  const double part =
      static_cast<double>(width - below->first) / static_cast<double>(above->first - below->first);
  return below->second + part * (above->second - below->second);
}

double Machine::operations_at(Dtype precision) const {
  if (const auto own = operations_in.find(precision); own != operations_in.end())
    return own->second;
  std::vector<std::string_view> names;
  for (const auto& [other, rate] : operations_in) names.push_back(name_of(other));
  KZERO_REQUIRE(
      operations > 0, ExitCode::usage,
      "{} has no rate for train.precision = \"{}\": it has {}; add rank.tflops_{}, or plan "
      "in a precision that it has",
      name, name_of(precision), fmt::join(names, " and "), name_of(precision));
  return operations;
}

Rates Machine::rates_for(Dtype precision, Index width, Index rows) const {
  const auto n = static_cast<double>(rows);
  return {.operations = operations_at(precision) * attained_at(width) * n / (n + half_rows),
          .memory_bytes = memory_bytes,
          .sent_bytes = network.within_node,
          .host = host};
}

void Machine::require_network(Index nodes) const {
  KZERO_REQUIRE(std::isfinite(network.rank_between), ExitCode::usage,
                "{} has no rates between nodes, and {} nodes are planned; add network.adapters, or "
                "network.rank_bandwidth and network.node_bandwidth",
                name, nodes);
}

std::string Machine::extrapolation(Index width) const {
  if (attained.empty()) return "";
  const Index narrowest = attained.begin()->first, widest = attained.rbegin()->first;
  if (width >= narrowest && width <= widest) return "";
  return fmt::format(
      "model.hidden = {} is outside the widths of [attained] in {}, {} to {}; the share of {} is "
      "taken, so the time is a guess",
      width, name, narrowest, widest, width < narrowest ? narrowest : widest);
}

}  // namespace kzero::plan
