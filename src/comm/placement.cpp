#include "comm/placement.hpp"

#include <fmt/format.h>

#include <utility>

#include "comm/shared_device.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

deck::Placement placement_on(std::vector<int> node_of_rank, const deck::Config& config,
                             Index ranks) {
  if (config.grid.node > 0) node_of_rank = filled_nodes(ranks, config.grid.node);
  const Index nodes = grid::shape_of_data_groups(node_of_rank, config.grid.tensor).nodes;
  return {.node_of_rank = std::move(node_of_rank), .data_nodes = nodes};
}

std::vector<int> data_rank_nodes(const deck::Config& config, Index tensor_rank) {
  const std::vector<int>& all = config.placement.node_of_rank;
  if (all.empty()) return std::vector<int>(static_cast<std::size_t>(config.grid.data), 0);
  const std::vector<int> nodes = grid::nodes_of_data_group(all, config.grid.tensor, tensor_rank);
  std::vector<int> ordered;
  for (const int rank : grid::shard_order(nodes, config.placement.data_nodes))
    ordered.push_back(nodes[rank]);
  return ordered;
}

std::vector<int> filled_nodes(Index ranks, Index node_ranks) {
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

std::string communicator_note(const deck::Config& config) {
  if (communicator_of(config) == config.run.communicator) return "";
  return fmt::format(
      "messages go over MPI (run.communicator = \"auto\"): {}, and NCCL needs a device "
      "for each rank",
      config.placement.shared_device);
}

deck::Placement find_placement(const grid::Group& world, const grid::Nodes& nodes,
                               const runtime::Session& session, const deck::Config& config) {
  std::vector<int> found;
  found.reserve(static_cast<std::size_t>(world.size()));
  for (int rank = 0; rank < world.size(); ++rank) found.push_back(nodes.of(rank));
  deck::Placement placement = placement_on(std::move(found), config, world.size());
  const NodeLoad mine{session.node_size(), session.threads(), session.node_cores()};
  placement.shares_cores = session.any_rank(shares_cores(mine));
  placement.shared_device = shared_device(world);
  return placement;
}

}  // namespace kzero::comm
