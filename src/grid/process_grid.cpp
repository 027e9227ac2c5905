#include "grid/process_grid.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace kzero::grid {

namespace {

MPI_Comm split(const Group& world, Index color, Index key) {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(world.handle(), static_cast<int>(color), static_cast<int>(key), &part);
  return part;
}

std::vector<int> nodes_of(const Group& world, Index tensor, std::span<const int> node_of_rank) {
  if (!node_of_rank.empty())
    return nodes_of_data_group(node_of_rank, tensor, world.rank() % tensor);
  return std::vector<int>(static_cast<std::size_t>(world.size() / tensor), 0);
}

/// The data group's ranks in the order of their shards.
Group data_group(const Group& world, Index tensor, const std::vector<int>& nodes,
                 const NodeShape& shape, const std::vector<int>& order) {
  const auto me = static_cast<int>(world.rank() / tensor);
  const auto key = std::ranges::find(order, me) - order.begin();
  std::vector<int> nodes_in_order;
  nodes_in_order.reserve(order.size());
  for (const int rank : order) nodes_in_order.push_back(nodes[rank]);
  Group group(split(world, world.rank() % tensor, key), "data");
  group.set_nodes(std::move(nodes_in_order), shape);
  return group;
}

Index checked_tensor(const Group& world, Index data, Index tensor) {
  const Index ranks = world.size();
  KZERO_REQUIRE(ranks % tensor == 0 && (data == 0 || data * tensor == ranks), ExitCode::usage,
                "grid.data = {} times grid.tensor = {} is not the {} ranks of this launch", data,
                tensor, ranks);
  return tensor;
}

}  // namespace

Group world_group() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return {copy, "world"};
}

bool is_launched() {
  int begun = 0, ended = 0;
  MPI_Initialized(&begun);
  MPI_Finalized(&ended);
  return begun != 0 && ended == 0;
}

void abort_launch(int exit_code) {
  if (is_launched()) MPI_Abort(MPI_COMM_WORLD, exit_code);
}

ProcessGrid::ProcessGrid(Group world, Index data, Index tensor, std::span<const int> node_of_rank)
    : world_(std::move(world)),
      nodes_(nodes_of(world_, checked_tensor(world_, data, tensor), node_of_rank)),
      shape_(node_of_rank.empty() ? NodeShape{1, std::ssize(nodes_)}
                                  : shape_of_data_groups(node_of_rank, tensor)),
      order_(shard_order(nodes_, shape_)),
      tensor_(split(world_, world_.rank() / tensor, world_.rank()), "tensor"),
      data_(data_group(world_, tensor, nodes_, shape_, order_)) {}

}  // namespace kzero::grid
