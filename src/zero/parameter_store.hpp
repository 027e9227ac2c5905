// Where the model finds its parameters. Replicated, every unit is always there (stages 0 to 2);
// partitioned (stage 3, the paper's P_p), a rank keeps its shard of each unit, and units are
// gathered ahead of use and let go as the schedule says.
#pragma once

#include "comm/communicator.hpp"
#include "tensor/view.hpp"
#include "zero/flat_buffer.hpp"
#include "zero/schedule.hpp"

namespace kzero::zero {

template <class T>
class ParameterStore {
 public:
  /// Takes the parameters' memory: `gathered` elements of it for units that are there for a while.
  ParameterStore(memory::Arenas& arenas, const param::FlatLayout& layout, Placement placement,
                 Index gathered, Index rank);

  /// Units by number, as the model takes them; null while a unit is not there.
  const std::vector<const T*>& units() const { return units_; }

  /// What this rank holds of all units.
  const FlatBuffer<T>& held() const { return held_; }

  /// The first element of what this rank would hold of unit u under a placement.
  T* share(Index u, Placement by) const { return held_.share(u, by, rank_); }

  /// Before an operation: begins the gathers that are due and waits for those it needs. Collective.
  void before(const ScheduleStep& step, const tensor::Execution& exec, comm::Communicator& comm);

  /// After it: lets go what is no longer needed.
  void after(const ScheduleStep& step);

  /// Begins to bring unit u's owned shards, which have changed, to every rank that keeps it whole:
  /// the end of a step in stages 1 and 2. Wait for the request before units are read. Collective.
  comm::Request all_gather_updated(Index u, const tensor::Execution& exec,
                                   comm::Communicator& comm) const;

 private:
  T* owned(Index u) const { return share(u, Placement::partitioned); }
  comm::Request gather(Index u, T* unit, const tensor::Execution& exec,
                       comm::Communicator& comm) const;

  const param::FlatLayout* layout_;
  Index rank_;
  FlatBuffer<T> held_;
  T* gathered_ = nullptr;
  std::vector<const T*> units_;
  std::vector<comm::Request> arrivals_;  // by unit, of gathers under way
};

}  // namespace kzero::zero
