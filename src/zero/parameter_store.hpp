// The parameters of a run as the model reads them. Replicated units (stages 0 to 2) are always
// available. With partitioned parameters (stage 3, the paper's P_p), a rank keeps its shard of each
// unit. Units are gathered before use and released after it, as scheduled. With a copy per node, a
// rank also keeps the shards of the ranks with the same place on other nodes, and units are
// gathered within the node. If the ranks of a copy share memory, all units are always available and
// each rank writes its own shards: reading ends with a message of all these ranks before any of
// them writes, and writing ends with finish_update() before any of them reads. With one copy on
// several nodes, a node's ranks may share the units that they gather.
#pragma once

#include "base/node_shape.hpp"
#include "comm/communicator.hpp"
#include "tensor/view.hpp"
#include "zero/flat_buffer.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

template <class T>
class ParameterStore {
 public:
  /// Allocates the parameters, and `gathered` elements for units that are gathered and released.
  /// The ranks of a node that share these elements count equal parts of them.
  ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout, const Stage& stage,
                 Index gathered, Index rank);

  /// The units that the model reads, by number. Null while a unit is not gathered.
  const std::vector<const T*>& units() const { return units_; }

  /// Sets the elements that this rank holds to zero, with padding. Other ranks may not read yet.
  void clear(const tensor::Execution& exec);

  /// Returns the first element of the range of unit u that this rank would hold under a placement.
  T* share(Index u, Placement by) const { return held_.share(u, by, rank_); }

  /// Calls `operate(operation, step)` for each operation of a schedule in order. The units that an
  /// operation needs are available during its call. Collective.
  template <class Operate>
  void run(const Schedule& schedule, const tensor::Execution& exec, comm::Communicator& comm,
           const Operate& operate) {
    for (std::size_t i = 0; i < schedule.steps().size(); ++i) {
      const ScheduleStep& step = schedule.steps()[i];
      before(step, exec, comm);
      operate(schedule.trace()[i], step);
      after(step);
    }
  }

  /// Starts the all-gather of unit u's updated parameters from their owners, which ends a step in
  /// stages 1 and 2, and in stage 3 with a copy per node. run() waits for it before the first
  /// operation that needs the unit. Collective.
  void all_gather_updated(Index u, const tensor::Execution& exec, comm::Communicator& comm);

  /// Waits for all gathers in flight.
  void finish(const tensor::Execution& exec, comm::Communicator& comm);

  /// Ends an update: call it after the last change of a parameter. Ranks that share memory wait for
  /// each other, after gathers in flight. Collective over them.
  void finish_update(const tensor::Execution& exec, comm::Communicator& comm);

 private:
  /// Starts the gathers that are due before an operation and waits for the units that it needs.
  /// Collective.
  void before(const ScheduleStep& step, const tensor::Execution& exec, comm::Communicator& comm);

  /// Releases the units that are no longer needed after an operation.
  void after(const ScheduleStep& step);

  /// Returns the first of the shards of unit u that this rank holds of a partitioned copy.
  T* part(Index u) const;
  T* owned(Index u) const { return share(u, Placement::partitioned); }
  void wait_for(Index u, const tensor::Execution& exec, comm::Communicator& comm);
  comm::Request gather(Index u, T* unit, const tensor::Execution& exec,
                       comm::Communicator& comm) const;

  const param::FlatLayout* layout_;
  NodeShape copies_;  // its nodes are the copies of the parameters
  NodeShape nodes_;   // of ranks that share gathered units; a rank is a node if none do
  Index rank_;
  const memory::SharedMemory* memory_;  // null unless ranks share the parameters, or measuring
  FlatBuffer<T> held_;                  // of this rank, or of all that share memory
  T* gathered_ = nullptr;
  std::vector<const T*> units_;
  std::vector<comm::Request> arrivals_;  // gathers in flight, by unit; 0: it has arrived
};

}  // namespace kzero::zero
