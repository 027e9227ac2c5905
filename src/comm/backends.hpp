// The communicators that this build has.
#pragma once

#include <memory>

#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"

namespace kzero::comm {

using deck::CommunicatorKind;

class Communicator;

/// The most bytes of one message over MPI within a node: large enough for full bandwidth, small
/// enough for messages to stay in a shared cache in transit, and far below MPI's limit of 2^31 - 1.
inline constexpr Index chunk_within_node = Index{1} << 20;
/// Between nodes. Over TCP, the control messages of a rendezvous wait for the data that was sent
/// before them on the same connection, so that should be little. Measured: docs/decisions.md.
inline constexpr Index chunk_between_nodes = Index{64} << 10;

/// The most messages over MPI in flight in each direction.
inline constexpr Index max_in_flight = 2;

/// Whether collectives move data while the caller computes (`yes`), or inside begin (`no`). At most
/// one communicator of a rank is `yes`. While its collectives are in flight, the rank may make MPI
/// calls only through communicators that are `alongside`. These take turns with it.
enum class Overlap { no, alongside, yes };

/// How a thread waits for messages that it moves itself: in MPI's own wait, which keeps its core
/// busy, or by polling, with yields and sleeps between polls. Spinning is faster if each thread has
/// a core, and several times slower if threads share cores.
enum class Waits { spin, yield };

/// Throws Error(usage) if this build does not have the communicator, or if `library_sums` is set
/// and the communicator's library does not provide sums.
void require_communicator(CommunicatorKind kind, bool library_sums);

/// Makes run.communicator for a group; group and traffic must outlive it. Communicators that
/// overlap always yield. Collective over the group. Throws Error(usage) if this build does not have
/// the communicator.
std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic,
                                                Waits waits = Waits::spin);

/// Throws the error of MPI back ends, which reduce only in rank order.
[[noreturn]] void refuse_library_sums();

/// Returns whether the communicator moves data without using a core of the host.
bool moves_by_itself(CommunicatorKind kind);

}  // namespace kzero::comm
