// A step as one rank computes and communicates: the operations of a micro-batch with their shares
// of the work, the collectives around them, and which of these may be in flight meanwhile. The
// bytes are those of engine/expected_traffic.hpp, and the order is that of zero::Schedule. Rates
// are not part of it.
#pragma once

#include <vector>

#include "deck/config.hpp"
#include "engine/blueprint.hpp"
#include "param/trace.hpp"
#include "plan/network.hpp"

namespace kzero::plan {

/// The sum of a unit's gradients in one round, in slices. The collectives are those of one slice.
struct UnitSum {
  Index slices = 0;
  Collective collect{};   // within the node; the host waits for it before it begins the exchange
  Collective exchange{};  // with the owners
  Collective gather{};    // of the sum to all ranks, in stage 0
};

/// An operation of a micro-batch. `work` and `recomputed` are its shares of a micro-batch's
/// operations and recomputation. The units are those of zero::ScheduleStep.
struct OutlinedOperation {
  double work = 0, recomputed = 0;
  double kept_bytes = 0;         // of a block's input, to the host in forward, back in backward
  bool has_kept_before = false;  // in backward: the unit before is a block with a kept input
  std::vector<Index> gathers{}, needs{}, complete{};
  param::Pass pass = param::Pass::forward;
  Index unit = 0;
};

/// Messages of a rank in its tensor or sequence group: per micro-batch, and for matrices per step.
struct GroupTraffic {
  double exchanged = 0, gathered = 0;  // bytes
  double exchanges = 0, hops = 0;      // messages whose latencies add up
};

/// The exchange of matrices with their owners, in rounds. The collectives are those of one round.
struct MatrixTurns {
  Index rounds = 0;
  Collective gather{}, back{};
  GroupTraffic tensor{};
};

/// An optimizer update on the host of a device: gradients are copied there and parameters back, in
/// parts of constant size.
struct HostUpdate {
  double bytes = 0;  // of all gradients that the rank updates with
  double part_bytes = 0;
};

struct StepOutline {
  Groups data, tensor, sequence;
  Index node_ranks = 1;  // of the first node
  Index sharing = 1;     // ranks on this rank's node
  Index rounds = 1;

  bool has_rings = false;           // of NCCL
  bool in_flight = false;           // collectives move data while the rank computes
  bool device_sums = false;         // a device adds up all slices while the rank computes
  bool reductions_overlap = false;  // a unit's reduction with the operation after it
  bool tensor_overlaps = false;     // messages of tensor groups with their operation; never in runs
  Index slots = 1;                  // slices in flight

  std::vector<OutlinedOperation> operations;
  std::vector<Collective> gathers;         // of parameters before operations, by unit
  std::vector<Collective> update_gathers;  // of updated parameters, by unit; empty: they stay
  std::vector<UnitSum> sums, last_sums;    // by unit, of a round and of the last one
  std::vector<double> updates;             // shares of the optimizer's bytes, by unit
  HostUpdate host_update;
  GroupTraffic tensor_per_micro_batch, sequence_per_micro_batch;
  MatrixTurns matrices;
};

/// Outlines the step of a resolved deck for a rank of each kind: the first one and, if nodes have
/// different numbers of ranks, the one with most ranks on other nodes.
std::vector<StepOutline> outlines(const deck::Config& config, const engine::Blueprint& blueprint);

}  // namespace kzero::plan
