#include "grid/process_grid.hpp"

#include <mpi.h>

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

/// The data group's ranks in the order of their shards. `order` has their numbers in the launch.
Group data_group(const Group& world, Index tensor, std::span<const int> node_of_rank,
                 const std::vector<int>& order) {
  const auto me = static_cast<int>(world.rank() / tensor);
  const auto key = std::ranges::find(order, me) - order.begin();
  Group group(split(world, world.rank() % tensor, key), "data");
  if (node_of_rank.empty()) return group;
  const auto nodes = nodes_of_data_group(node_of_rank, tensor, world.rank() % tensor);
  std::vector<int> in_order;
  in_order.reserve(order.size());
  for (const int rank : order) in_order.push_back(nodes[rank]);
  group.set_nodes(std::move(in_order), shape_of_data_groups(node_of_rank, tensor));
  return group;
}

/// Ranks are counted node by node, so that a group is on few nodes.
Group sequence_group(const Group& data, Index ranks) {
  KZERO_REQUIRE(data.size() % ranks == 0, ExitCode::usage,
                "grid.sequence = {} does not divide the {} data-parallel ranks of this launch",
                ranks, data.size());
  const NodeShape shape = data.shape().is_regular() ? data.shape() : NodeShape{1, data.size()};
  const Index position = shape.position_of(data.rank());
  Group group = data.part(position / ranks, "sequence", position);
  std::vector<int> nodes;
  const Index first = position / ranks * ranks;
  for (Index other = first; other < first + ranks; ++other)
    nodes.push_back(data.node_of(static_cast<int>(shape.rank_of(other))));
  group.set_nodes(std::move(nodes), {});
  return group;
}

Group node_group(const Group& data) {
  int first = 0;
  while (data.leaves_node(first)) ++first;
  return data.part(first, "node");
}

std::vector<int> order_of(const Group& world, Index tensor, std::span<const int> node_of_rank) {
  if (node_of_rank.empty()) {
    const std::vector<int> one_node(static_cast<std::size_t>(world.size() / tensor), 0);
    return shard_order(one_node, 1);
  }
  return shard_order(nodes_of_data_group(node_of_rank, tensor, world.rank() % tensor),
                     shape_of_data_groups(node_of_rank, tensor).nodes);
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

ProcessGrid::ProcessGrid(Group world, Index data, Index tensor, std::span<const int> node_of_rank,
                         Index sequence)
    : world_(std::move(world)),
      order_(order_of(world_, checked_tensor(world_, data, tensor), node_of_rank)),
      tensor_(split(world_, world_.rank() / tensor, world_.rank()), "tensor"),
      data_(data_group(world_, tensor, node_of_rank, order_)),
      sequence_(sequence_group(data_, sequence)),
      node_(node_group(data_)) {}

}  // namespace kzero::grid
