// Which ranks of a launch share a node.
#pragma once

#include <string>
#include <vector>

#include "grid/group.hpp"

namespace kzero::grid {

class Nodes {
 public:
  /// `host` is this rank's node name. Ranks share a node if MPI reports that they can share memory;
  /// two nodes may have the same name. Collective over `world`, all ranks of the launch.
  Nodes(const Group& world, const std::string& host);

  int count() const { return static_cast<int>(ranks_.size()); }

  /// The node of a rank. Nodes are numbered in the order of their first ranks.
  int of(int rank) const { return node_of_[rank]; }

  /// The ranks of a node, ascending.
  const std::vector<int>& ranks(int node) const { return ranks_[node]; }
  int first_rank(int node) const { return ranks(node).front(); }
  const std::string& name(int node) const { return names_[node]; }

  /// The name of a rank's node.
  const std::string& host(int rank) const { return name(of(rank)); }

  /// Describes a node as "node3 (rank 2)" or "node3 (ranks 4 to 7)".
  std::string describe(int node) const;

 private:
  std::vector<int> node_of_;             // [ranks]
  std::vector<std::vector<int>> ranks_;  // [nodes]
  std::vector<std::string> names_;       // [nodes]
};

}  // namespace kzero::grid
