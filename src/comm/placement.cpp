#include "comm/placement.hpp"

#include <fmt/format.h>

#include <vector>

#include "runtime/host_name.hpp"

namespace kzero::comm {

bool data_groups_leave_nodes(std::span<const int> node_of_rank, Index tensor_ranks) {
  // Neighbours of a data group are tensor_ranks apart.
  const auto stride = static_cast<std::size_t>(tensor_ranks);
  for (std::size_t rank = stride; rank < node_of_rank.size(); ++rank) {
    if (node_of_rank[rank] != node_of_rank[rank - stride]) return true;
  }
  return false;
}

bool data_groups_leave_nodes(Index ranks, Index nodes, Index tensor_ranks) {
  const Index node_ranks = ceil_div(ranks, nodes);
  std::vector<int> node_of_rank;
  node_of_rank.reserve(static_cast<std::size_t>(ranks));
  for (Index rank = 0; rank < ranks; ++rank)
    node_of_rank.push_back(static_cast<int>(rank / node_ranks));
  return data_groups_leave_nodes(node_of_rank, tensor_ranks);
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
                               const runtime::Session& session, Index tensor_ranks) {
  std::vector<int> node_of_rank;
  node_of_rank.reserve(static_cast<std::size_t>(world.size()));
  for (int rank = 0; rank < world.size(); ++rank) node_of_rank.push_back(nodes.of(rank));
  const NodeLoad mine{session.node_size(), session.threads(), session.node_cores()};
  return {.leaves_nodes = data_groups_leave_nodes(node_of_rank, tensor_ranks),
          .shares_cores = session.any_rank(shares_cores(mine))};
}

}  // namespace kzero::comm
