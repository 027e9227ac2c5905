// Compares the facts of any number of ranks. Ranks with equal facts are one kind, and one rank of
// each kind sends its facts.
#pragma once

#include <string>
#include <vector>

#include "grid/nodes.hpp"
#include "probe/facts.hpp"

namespace kzero::probe {

/// A value of a fact, and the ranks that have it in ascending order.
struct Variant {
  std::string value;
  std::vector<int> ranks;
};

/// A fact in which ranks differ. The variant of most ranks comes first.
struct Difference {
  std::string name;
  Weight weight = Weight::advisory;
  std::vector<Variant> variants;
};

struct Agreement {
  std::vector<std::string> same;  // names of shared facts; libraries are one, as are variables
  std::vector<Difference> differences;
  Index kinds = 1;     // of ranks, by their facts
  Index compared = 1;  // kinds that were asked, at most most_kinds

  /// Returns whether the ranks can be one run that computes the same bits on every rank.
  bool is_given() const;
};

inline constexpr std::size_t most_kinds = 64;

/// Ranks with equal facts, and the facts.
struct Kind {
  std::vector<int> ranks;
  Facts facts;
};

/// Compares kinds. A fact that a kind lacks is a variant with an empty value, except for libraries:
/// a library that is not loaded cannot have a different version.
Agreement compare(const std::vector<Kind>& kinds);

/// Compares the facts of all ranks. The root gets the result, and the others get an empty one.
/// Collective over `world`.
Agreement compare(const grid::Group& world, const Facts& mine);

/// Throws AgreedError(other), which names the nodes, if ranks run different programs or MPI
/// libraries. Such ranks may not understand each other's messages, so call this first. Collective
/// over `world`, whose nodes are `nodes`.
void require_one_program(const grid::Group& world, const grid::Nodes& nodes);

/// Describes a difference in one line: "variable OMP_NUM_THREADS: 1 on 6 nodes, first node1; 2 on
/// node3".
std::string describe(const Difference& difference, const grid::Nodes& nodes);

/// Describes the location of ranks: "node3", "rank 5 on node3", "node3 and node4", "12 nodes, first
/// node3".
std::string describe(const std::vector<int>& ranks, const grid::Nodes& nodes);

}  // namespace kzero::probe
