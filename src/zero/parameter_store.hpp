// The parameters of a run as the model reads them. Replicated (stages 0 to 2), every unit is always
// available; partitioned (stage 3, the paper's P_p), a rank keeps its shard of each unit, and units
// are gathered ahead of use and released according to the schedule.
#pragma once

#include "comm/communicator.hpp"
#include "tensor/view.hpp"
#include "zero/flat_buffer.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

template <class T>
class ParameterStore {
 public:
  /// Takes the parameters' memory, of which `gathered` elements are for units that are gathered and
  /// released.
  ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout, Placement placement,
                 Index gathered, Index rank);

  /// The units by number, as the model reads them; null while a unit is not gathered.
  const std::vector<const T*>& units() const { return units_; }

  /// This rank's elements of all units.
  const FlatBuffer<T>& held() const { return held_; }

  /// The first element of the range that this rank would hold of unit u under a placement.
  T* share(Index u, Placement by) const { return held_.share(u, by, rank_); }

  /// Calls `operate(operation, step)` for each operation of a schedule in order, while the units
  /// that it needs are there. Collective.
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

  /// Begins to all-gather the updated parameters of unit u from their owners: the end of a step in
  /// stages 1 and 2. Wait for the request before units are read. Collective.
  comm::Request all_gather_updated(Index u, const tensor::Execution& exec,
                                   comm::Communicator& comm) const;

 private:
  /// Prepares an operation: begins the gathers that are due and waits for those it needs.
  /// Collective.
  void before(const ScheduleStep& step, const tensor::Execution& exec, comm::Communicator& comm);

  /// Releases the units that are no longer needed after an operation.
  void after(const ScheduleStep& step);

  T* owned(Index u) const { return share(u, Placement::partitioned); }
  comm::Request gather(Index u, T* unit, const tensor::Execution& exec,
                       comm::Communicator& comm) const;

  const param::FlatLayout* layout_;
  Index rank_;
  FlatBuffer<T> held_;
  T* gathered_ = nullptr;
  std::vector<const T*> units_;
  std::vector<comm::Request> arrivals_;  // gathers in flight, by unit
};

}  // namespace kzero::zero
