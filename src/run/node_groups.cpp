#include "run/node_groups.hpp"

#include <algorithm>
#include <map>

namespace kzero::run {

namespace {

metrics::NodeRow row_of(const NodeGroup& group, std::span<const RankTime> times) {
  metrics::NodeRow row;
  row.host = group.host;
  row.first_rank = group.ranks.front();
  row.ranks = static_cast<Index>(group.ranks.size());
  RankTime sum;
  for (const Index rank : group.ranks) sum += times[rank];
  const auto ranks = static_cast<double>(row.ranks);
  row.wait_seconds = sum.waited / ranks;
  row.no_core_seconds = sum.no_core / ranks;
  row.compute_seconds = sum.computed() / ranks;
  row.busiest_rank = busiest_rank(group, times);
  row.busiest_seconds = times[row.busiest_rank].computed();
  return row;
}

metrics::Spread spread_of(const std::vector<metrics::NodeRow>& rows,
                          double metrics::NodeRow::*value) {
  metrics::Spread spread{rows.front().*value, 0, rows.front().*value};
  for (const metrics::NodeRow& row : rows) {
    spread.min = std::min(spread.min, row.*value);
    spread.max = std::max(spread.max, row.*value);
    spread.mean += row.*value / static_cast<double>(rows.size());
  }
  return spread;
}

}  // namespace

NodeGroups::NodeGroups(const std::vector<std::string>& hosts) {
  std::map<std::string, std::size_t> found;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    const auto [place, is_new] = found.emplace(hosts[rank], groups_.size());
    if (is_new) groups_.push_back({hosts[rank], {}});
    groups_[place->second].ranks.push_back(static_cast<Index>(rank));
  }
  by_rank_ = groups_.size() == 1;
  if (!by_rank_) return;
  groups_.clear();
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    groups_.push_back({hosts[rank], {static_cast<Index>(rank)}});
}

metrics::NodesRecord NodeGroups::record(std::span<const RankTime> times, Index step, Index steps,
                                        const std::vector<bool>& slow) const {
  metrics::NodesRecord record;
  record.step = step;
  record.steps = steps;
  record.by_rank = by_rank_;
  record.count = static_cast<Index>(groups_.size());
  for (const RankTime& time : times)
    record.seconds += time.seconds / static_cast<double>(times.size());
  for (std::size_t i = 0; i < groups_.size(); ++i) {
    record.rows.push_back(row_of(groups_[i], times));
    record.rows.back().slow = slow[i];
  }
  record.compute = spread_of(record.rows, &metrics::NodeRow::compute_seconds);
  record.wait = spread_of(record.rows, &metrics::NodeRow::wait_seconds);
  std::ranges::stable_sort(record.rows, std::ranges::greater{}, &metrics::NodeRow::compute_seconds);
  if (record.count > metrics::max_node_rows)
    record.rows.resize(static_cast<std::size_t>(metrics::max_node_rows));
  return record;
}

Index busiest_rank(const NodeGroup& group, std::span<const RankTime> times) {
  return *std::ranges::max_element(group.ranks, {},
                                   [&](Index rank) { return times[rank].computed(); });
}

}  // namespace kzero::run
