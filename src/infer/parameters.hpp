// The parameters of a model that is only run forward. They are replicated on every data rank, or
// partitioned as in ZeRO's stage 3: gathered unit by unit, or shared in memory.
#pragma once

#include "engine/blueprint.hpp"
#include "engine/machinery.hpp"
#include "infer/source.hpp"
#include "model/model.hpp"
#include "param/flat_layout.hpp"
#include "zero/parameter_store.hpp"
#include "zero/schedule.hpp"

namespace kzero::infer {

/// A model that is only run forward, before any memory exists.
struct ForwardBlueprint : engine::ModelBlueprint {
  zero::Schedule schedule;

  /// The config is resolved. Its model.sequence may be shorter than the model's own.
  ForwardBlueprint(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor);
};

template <class T>
class Parameters {
 public:
  /// Takes memory from the arenas, which may be measuring ones. The blueprint must outlive this
  /// object.
  Parameters(memory::Arenas& arenas, const ForwardBlueprint& blueprint, Index data_rank);

  /// Reads the source's weights, rounded to T as in training. Only the first learned positions are
  /// read if the sequence is shorter. Each data rank reads its share; if the parameters are
  /// replicated, the ranks exchange their shares. Throws AgreedError if any rank cannot read its
  /// part. Collective over all ranks of the grid.
  void load(const tensor::Execution& exec, const Values& values, engine::Machinery& machinery);

  /// The units by number; null while a partitioned unit is not gathered.
  model::Units<const T> units() const { return model::Units<const T>(store_.units()); }

  /// Calls `operate(operation)` for each operation of the blueprint's schedule in order, with the
  /// units that it needs. Collective over the data group if the parameters are partitioned.
  template <class Operate>
  void run(const tensor::Execution& exec, comm::Communicator& data, const Operate& operate) {
    store_.run(
        blueprint_->schedule, exec, data,
        [&](const param::Operation& operation, const zero::ScheduleStep&) { operate(operation); });
  }

 private:
  void read_unit(Index u, const tensor::Execution& exec, const Values& values, Index data_rank);

  const ForwardBlueprint* blueprint_;
  zero::ParameterStore<T> store_;
  Index chunk_;     // elements read at once
  float* staging_;  // [chunk]
};

}  // namespace kzero::infer
