#include "grid/nodes.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <map>
#include <sstream>

namespace kzero::grid {

namespace {

/// The rank, in `world`, of the first rank on this rank's node.
int first_of_node(const Group& world) {
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(world.handle(), MPI_COMM_TYPE_SHARED, world.rank(), MPI_INFO_NULL, &node);
  int first = world.rank();
  MPI_Bcast(&first, 1, MPI_INT, 0, node);
  MPI_Comm_free(&node);
  return first;
}

}  // namespace

Nodes::Nodes(const Group& world, const std::string& host) {
  const std::vector<double> firsts = world.all_gather(first_of_node(world));
  std::map<int, int> node_of_first;
  for (std::size_t rank = 0; rank < firsts.size(); ++rank) {
    const auto [found, is_new] =
        node_of_first.try_emplace(static_cast<int>(firsts[rank]), static_cast<int>(ranks_.size()));
    if (is_new) ranks_.emplace_back();
    node_of_.push_back(found->second);
    ranks_[found->second].push_back(static_cast<int>(rank));
  }
  const bool is_first = first_rank(of(world.rank())) == world.rank();
  std::string names;  // host names contain no line ends
  for (const std::string& name : world.gather(is_first ? host + '\n' : "")) names += name;
  std::istringstream lines(world.broadcast(names));
  for (std::string name; std::getline(lines, name);) names_.push_back(name);
}

std::string Nodes::describe(int node) const {
  const std::vector<int>& all = ranks(node);
  const bool is_range = all.back() - all.front() + 1 == static_cast<int>(all.size());
  if (all.size() == 1) return fmt::format("{} (rank {})", name(node), all.front());
  if (is_range) return fmt::format("{} (ranks {} to {})", name(node), all.front(), all.back());
  return fmt::format("{} ({} ranks, first {})", name(node), all.size(), all.front());
}

}  // namespace kzero::grid
