#include "grid/node_shape.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace kzero::grid {

std::vector<int> nodes_of_data_group(std::span<const int> node_of_rank, Index tensor,
                                     Index tensor_rank) {
  std::vector<int> nodes;
  std::map<int, int> number_of;
  for (auto rank = static_cast<std::size_t>(tensor_rank); rank < node_of_rank.size();
       rank += static_cast<std::size_t>(tensor)) {
    const auto next = static_cast<int>(number_of.size());
    nodes.push_back(number_of.try_emplace(node_of_rank[rank], next).first->second);
  }
  return nodes;
}

NodeShape shape_of_data_groups(std::span<const int> node_of_rank, Index tensor) {
  const std::vector<int> first = nodes_of_data_group(node_of_rank, tensor, 0);
  if (first.empty()) return {};
  const auto ranks = std::ssize(first);
  const Index nodes = std::ranges::max(first) + 1;
  std::vector<Index> counts(static_cast<std::size_t>(nodes));
  for (const int node : first) ++counts[node];
  bool is_regular = ranks % nodes == 0 && std::ranges::all_of(counts, [&](Index count) {
                      return count == ranks / nodes;
                    });
  for (Index other = 1; other < tensor; ++other)
    is_regular = is_regular && nodes_of_data_group(node_of_rank, tensor, other) == first;
  return is_regular ? NodeShape{nodes, ranks / nodes} : NodeShape{0, 0};
}

std::vector<int> shard_order(std::span<const int> nodes_of_group, Index nodes) {
  std::vector<int> order(nodes_of_group.size());
  std::iota(order.begin(), order.end(), 0);
  if (nodes == 0) return order;
  const NodeShape shape{nodes, std::ssize(order) / nodes};
  std::vector<Index> seen(static_cast<std::size_t>(nodes));
  for (int rank = 0; rank < static_cast<int>(order.size()); ++rank) {
    const int node = nodes_of_group[rank];
    order[shape.rank_at(seen[node]++, node)] = rank;
  }
  return order;
}

}  // namespace kzero::grid
