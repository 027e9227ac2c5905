#include "comm/placement.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/host_name.hpp"

namespace kzero::comm {

grid::NodeShape data_nodes(const deck::Config& config) {
  const std::vector<int>& nodes = config.placement.node_of_rank;
  if (nodes.empty()) return {1, std::max<Index>(1, config.grid.data)};
  return grid::shape_of_data_groups(nodes, config.grid.tensor);
}

std::vector<int> data_rank_nodes(const deck::Config& config, Index tensor_rank) {
  const std::vector<int>& all = config.placement.node_of_rank;
  if (all.empty()) return std::vector<int>(static_cast<std::size_t>(config.grid.data), 0);
  std::vector<int> nodes = grid::nodes_of_data_group(all, config.grid.tensor, tensor_rank);
  std::vector<int> ordered;
  for (const int rank : grid::shard_order(nodes, data_nodes(config)))
    ordered.push_back(nodes[rank]);
  return ordered;
}

bool data_groups_leave_nodes(const deck::Config& config) { return data_nodes(config).nodes != 1; }

std::vector<int> planned_nodes(Index ranks, Index nodes) {
  return nodes_of(ranks, ceil_div(ranks, nodes));
}

std::vector<int> nodes_of(Index ranks, Index node_ranks) {
  std::vector<int> node_of_rank;
  node_of_rank.reserve(static_cast<std::size_t>(ranks));
  for (Index rank = 0; rank < ranks; ++rank)
    node_of_rank.push_back(static_cast<int>(rank / node_ranks));
  return node_of_rank;
}

std::string crowding(const runtime::Session& session) {
  const NodeLoad load{session.node_size(), session.threads(), session.node_cores()};
  if (!shares_cores(load)) return "";
  return fmt::format(
      "{} ranks x {} threads share {} cores of node {}, which makes them far slower than fewer "
      "would be; start fewer ranks or set run.threads",
      load.ranks, load.threads, load.cores, runtime::host_name());
}

deck::Placement find_placement(const grid::Group& world, const grid::Nodes& nodes,
                               const runtime::Session& session, const deck::Config& config) {
  deck::Placement placement;
  if (config.grid.node > 0) placement.node_of_rank = nodes_of(world.size(), config.grid.node);
  for (int rank = 0; config.grid.node == 0 && rank < world.size(); ++rank)
    placement.node_of_rank.push_back(nodes.of(rank));
  const NodeLoad mine{session.node_size(), session.threads(), session.node_cores()};
  placement.shares_cores = session.any_rank(shares_cores(mine));
  return placement;
}

}  // namespace kzero::comm
