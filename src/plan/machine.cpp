#include "plan/machine.hpp"

#include <iterator>

namespace kzero::plan {

namespace {

Pattern pattern_of(const metrics::TrafficRow& row, const Entry& entry) {
  const bool sums_in_order = entry.reduction == deck::ReductionOrder::ranks;
  const bool reduces = row.group == "data" && row.operation == "reduce_scatter";
  return reduces && sums_in_order ? Pattern::exchange : Pattern::ring;
}

/// Tensor ranks are innermost: adjacent ranks belong to the same tensor group.
Groups groups_of(const metrics::TrafficRow& row, const Entry& entry) {
  if (row.group == "tensor") return {entry.ranks(), entry.tensor_ranks, 1};
  return {entry.ranks(), entry.data_ranks, entry.tensor_ranks};
}

}  // namespace

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

Rates Machine::rates_of(const Entry& entry) const {
  double seconds = 0;
  for (const metrics::TrafficRow& row : entry.traffic)
    seconds += static_cast<double>(row.bytes_per_step) *
               seconds_per_byte(network, groups_of(row, entry), pattern_of(row, entry));
  const double sent =
      seconds > 0 ? static_cast<double>(entry.sent_bytes()) / seconds : network.within_node;
  return {operations * attained_at(entry.width), memory_bytes, sent};
}

}  // namespace kzero::plan
