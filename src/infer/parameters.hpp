// The parameters of a model that is only run forward. They are replicated on every data rank, or
// partitioned and gathered unit by unit as in ZeRO's stage 3.
#pragma once

#include "infer/machinery.hpp"
#include "infer/source.hpp"
#include "param/flat_layout.hpp"
#include "zero/parameter_store.hpp"
#include "zero/schedule.hpp"

namespace kzero::infer {

/// Facts of a model before any memory exists.
struct ForwardPlan {
  model::TensorRank tensor;
  std::shared_ptr<const model::Definition> definition;
  param::Table table;  // local to this tensor rank
  param::FlatLayout layout;
  zero::Stage stage;
  zero::Schedule schedule;

  /// Computes the plan of a resolved config. Its model.sequence may be shorter than the model's
  /// own.
  ForwardPlan(const deck::Config& config, Index data_ranks, const model::TensorRank& tensor);
};

template <class T>
class Parameters {
 public:
  /// Takes memory from the arenas, which may be measuring ones. The plan must outlive this object.
  Parameters(memory::Arenas& arenas, const ForwardPlan& plan, Index data_rank);

  /// Reads the source's weights, rounded to T as in training. Only the first learned positions are
  /// read if the sequence is shorter. Each data rank reads its share; if the parameters are
  /// replicated, the ranks exchange their shares. Throws AgreedError if any rank cannot read its
  /// part. Collective over all ranks of the grid.
  void load(const tensor::Execution& exec, const Values& values, Machinery& machinery);

  /// The units by number; null while a partitioned unit is not gathered.
  model::Units<const T> units() const { return model::Units<const T>(store_.units()); }

  /// Call these around operation i of the plan's schedule. Collective over the data group. They do
  /// nothing if the parameters are replicated.
  void before(std::size_t i, const tensor::Execution& exec, comm::Communicator& data);
  void after(std::size_t i);

 private:
  void read_unit(Index u, const tensor::Execution& exec, const Values& values, Index data_rank);

  const ForwardPlan* plan_;
  zero::ParameterStore<T> store_;
  Index chunk_;     // elements read at once
  float* staging_;  // [chunk]
};

}  // namespace kzero::infer
