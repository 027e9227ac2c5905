// Where the ranks of a launch are, and how they communicate for it.
#pragma once

#include <string>
#include <vector>

#include "comm/backends.hpp"
#include "deck/config.hpp"
#include "grid/node_shape.hpp"
#include "grid/nodes.hpp"
#include "runtime/session.hpp"

namespace kzero::comm {

/// Places a deck's ranks: by grid.node, or else as `node_of_rank` says.
deck::Placement placement_on(std::vector<int> node_of_rank, const deck::Config& config,
                             Index ranks);

/// The node of every rank of a data group, in the order of shards (grid/node_shape.hpp).
std::vector<int> data_rank_nodes(const deck::Config& config, Index tensor_rank);

/// The nodes of ranks that fill nodes in order, `node_ranks` on each.
std::vector<int> filled_nodes(Index ranks, Index node_ranks);

/// The ranks of one node, the threads of each, and the node's cores; 0 cores: unknown.
struct NodeLoad {
  Index ranks = 1, threads = 1, cores = 0;
};

/// Returns whether threads outnumber cores.
inline bool shares_cores(const NodeLoad& load) {
  return load.cores > 0 && load.ranks * load.threads > load.cores;
}

/// Returns a warning if there are more threads than cores: threads that wait for one another make a
/// run slower by orders of magnitude. Empty if each thread has a core.
std::string crowding(const runtime::Session& session);

/// Finds the placement of this launch, the same on every rank. Collective over `world`, all ranks
/// of the session.
deck::Placement find_placement(const grid::Group& world, const grid::Nodes& nodes,
                               const runtime::Session& session, const deck::Config& config);

/// Resolves run.communicator: "auto" is MPI if ranks share a device, because NCCL needs a device
/// for each rank.
inline CommunicatorKind communicator_of(const deck::Config& config) {
  const bool is_automatic = config.run.communicator == CommunicatorKind::automatic;
  if (is_automatic && !config.placement.shared_device.empty()) return CommunicatorKind::mpi;
  return config.run.communicator;
}

/// Returns a line that says so if ranks share a device and "auto" is therefore MPI; empty
/// otherwise.
std::string communicator_note(const deck::Config& config);

inline bool moves_by_itself(const deck::Config& config) {
  return moves_by_itself(communicator_of(config));
}

/// Resolves zero.overlap. "auto" is on where messages take no core from the rank, or leave a node:
/// docs/results.md has the measurements.
inline Overlap overlap_of(const deck::Config& config) {
  const bool is_on = config.zero.overlap == deck::Overlap::automatic
                         ? moves_by_itself(config) || config.placement.data_nodes != 1
                         : config.zero.overlap == deck::Overlap::on;
  return is_on ? Overlap::yes : Overlap::no;
}

/// Returns the overlap of the tensor group's communicator, which works while the data group's
/// collectives may be in flight.
inline Overlap overlap_alongside(const deck::Config& config) {
  return overlap_of(config) == Overlap::yes ? Overlap::alongside : Overlap::no;
}

/// How ranks wait for messages that do not overlap with computing.
inline Waits waits_of(const deck::Config& config) {
  return config.placement.shares_cores ? Waits::yield : Waits::spin;
}

}  // namespace kzero::comm
