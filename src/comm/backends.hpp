// The communicators that this build has.
#pragma once

#include <memory>

#include "comm/traffic.hpp"
#include "deck/config.hpp"
#include "grid/group.hpp"

namespace kzero::comm {

using deck::CommunicatorKind;

class Communicator;

/// Says whether collectives move data while the caller computes, or inside begin. One communicator
/// of a rank may overlap; while its collectives are in flight, the only other MPI calls on the rank
/// may be those of communicators made `beside` it, which take turns with it.
enum class Overlap { no, beside, yes };

/// Says how a thread waits for messages that it moves itself: in MPI's own wait, which keeps its
/// core busy, or by polls between which it yields and sleeps. Spinning is faster where each thread
/// has a core, and slower by factors where threads share cores.
enum class Waits { spin, yield };

/// Throws Error(usage) if this build does not have the communicator, or if `library_sums` asks for
/// sums that the communicator's library does not have.
void require_communicator(CommunicatorKind kind, bool library_sums);

/// Makes run.communicator for a group; group and traffic must outlive it. Communicators that
/// overlap always yield. Collective over the group. Throws Error(usage) if this build does not have
/// it.
std::unique_ptr<Communicator> make_communicator(CommunicatorKind kind, Overlap overlap,
                                                const grid::Group& group, Traffic& traffic,
                                                Waits waits = Waits::spin);

/// Throws the error of MPI backends, which only reduce in rank order.
[[noreturn]] void refuse_library_sums();

/// Returns whether the communicator moves data without a core of the host's.
bool moves_by_itself(CommunicatorKind kind);

}  // namespace kzero::comm
