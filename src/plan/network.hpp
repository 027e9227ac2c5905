// The time of collectives on a two-level machine: ranks within a node, and nodes. Traffic between
// nodes is limited by each rank's rate and by the rate of the entire node. All groups are active at
// the same time, and the slowest rank or node determines the result.
#pragma once

#include <array>
#include <limits>

#include "base/types.hpp"

namespace kzero::plan {

/// Bytes per second, and seconds per message. Node n holds ranks from n * node_ranks. The last node
/// may have fewer ranks.
struct Network {
  Index node_ranks = 1;
  double within_node = 0;   // of a rank to others on its node
  double rank_between = 0;  // of a rank to other nodes
  double node_between = 0;  // of all ranks of a node to other nodes
  double within_latency = 1e-6;
  double between_latency = 5e-6;
  double rank_sends = std::numeric_limits<double>::infinity();  // of a rank to all others together
  Index rings = 1;  // that a collective of NCCL uses between nodes, each over an adapter of its own
};

/// A machine whose ranks send to all others at one rate, without latency.
Network uniform_network(double bytes_per_second);

/// Groups of `size` ranks that together are all `ranks`. Members of a group are `stride` apart.
struct Groups {
  Index ranks = 1, size = 1, stride = 1;
};

/// How a rank sends: to its successor in the group, as NCCL's gathers and sums do; to all other
/// ranks at the same time, as groups of ncclSend do; or to one rank after another, as over MPI.
enum class Pattern { ring, exchange, swaps };

/// Returns the seconds per byte that every rank sends, without latency. A ring sends to the
/// successor, the other patterns equally to every other rank.
double seconds_per_byte(const Network& network, const Groups& groups, Pattern pattern);

/// A collective of the data group as one rank sends it: bytes within its node and to others, and
/// the messages whose latencies add up.
struct Collective {
  Pattern pattern = Pattern::swaps;
  double within = 0, between = 0;
  double within_messages = 0, between_messages = 0;

  double bytes() const { return within + between; }
};

/// The links that carry the messages of a rank.
enum class Link { within, between, host };

constexpr std::array all_links{Link::within, Link::between, Link::host};

/// The seconds of messages, and those in which they use each link: `busy` seconds that end `end`
/// seconds after the messages begin.
struct LinkUse {
  struct Use {
    double busy = 0, end = 0;
  };

  double seconds = 0;
  std::array<Use, all_links.size()> uses{};

  /// Uses one link all the time.
  static LinkUse of(Link link, double seconds);

  Use& operator[](Link link) { return uses[static_cast<std::size_t>(link)]; }
  const Use& operator[](Link link) const { return uses[static_cast<std::size_t>(link)]; }

  /// Returns these messages and others that begin when these have ended.
  LinkUse then(const LinkUse& next) const;

  /// Returns these messages `times` times in turn.
  LinkUse repeated(double times) const;
};

/// Returns the time of a collective and the links it uses. The rank's node has `sharing` ranks, and
/// each sends as much. A byte of a ring takes `ring_byte` seconds. A ring that leaves the node uses
/// the link between nodes all the time. A rank with one rate to all others has one link, `within`.
LinkUse use_of(const Network& network, Index sharing, double ring_byte,
               const Collective& collective);

}  // namespace kzero::plan
