// Compares the facts of any number of ranks. Ranks with equal facts form one kind, and one rank of
// each kind is asked for its facts.
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

struct Comparison {
  std::vector<std::string> same;  // names of facts that all ranks share; libraries are one, and
                                  // so are variables
  std::vector<Difference> differences;
  Index kinds = 1;     // of ranks, by their facts
  Index compared = 1;  // kinds that were asked, at most max_kinds

  /// Returns whether the ranks can be one run that computes the same bits as any other.
  bool agrees() const;
};

inline constexpr std::size_t max_kinds = 64;

/// Ranks whose facts are equal, and the facts.
struct Kind {
  std::vector<int> ranks;
  Facts facts;
};

/// Compares kinds. A fact that a kind lacks is a variant with an empty value. Libraries are the
/// exception: a library that a rank did not load cannot have another version there.
Comparison compare(const std::vector<Kind>& kinds);

/// Compares the facts of all ranks. The root gets the result, the others an empty one. Collective
/// over `world`.
Comparison compare(const grid::Group& world, const Facts& mine);

/// Throws AgreedError(other), which names the nodes, if ranks run different programs or MPI
/// libraries, because such ranks may not understand each other's messages. Call it before any other
/// function. Collective over `world`; `nodes` are the nodes of its ranks.
void require_one_program(const grid::Group& world, const grid::Nodes& nodes);

/// Describes a difference in one line: "variable OMP_NUM_THREADS: 1 on
/// 6 nodes, first node1; 2 on node3".
std::string describe(const Difference& difference, const grid::Nodes& nodes);

/// Describes where ranks are: "node3", "rank 5 on node3", "node3 and node4", "12 nodes, first
/// node3".
std::string describe(const std::vector<int>& ranks, const grid::Nodes& nodes);

}  // namespace kzero::probe
