// All buffers of a rank during a run. Measuring arenas count them for the memory plan. Allocated
// arenas provide them for the run.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/timeline.hpp"
#include "base/types.hpp"
#include "checkpoint/format/staging.hpp"
#include "engine/batches.hpp"
#include "engine/blueprint.hpp"
#include "engine/gradient_hashes.hpp"
#include "engine/matrix_exchange.hpp"
#include "engine/parameter_sums.hpp"
#include "engine/preference_pass.hpp"
#include "engine/step_sums.hpp"
#include "memory/arenas.hpp"
#include "model/model.hpp"
#include "optim/cpu_offload.hpp"
#include "runtime/event.hpp"
#include "zero/gradient_store.hpp"
#include "zero/parameter_store.hpp"
#include "zero/state_buffer.hpp"

namespace kzero::engine {

template <class T>
struct Buffers {
  zero::ParameterStore<T> parameters;
  zero::GradientStore<T> gradients;
  /// The optimizer's state arrays in the order of their declaration. In an fp32 run without
  /// offload, the first is empty because the parameters are the master weights.
  std::vector<zero::StateBuffer> state;
  ParameterSums sums;  // empty for a single-pass optimizer
  std::optional<optim::CpuOffloadOptimizer<T>> offload_optimizer;  // for offload from a device
  std::unique_ptr<model::Model<T>> model;
  std::optional<MatrixExchange<T>> matrices;  // if the optimizer needs complete matrices
  Batches batches;
  std::optional<PreferencePass<T>> preference;  // with preference.loss
  StepSums step_sums;
  std::optional<GradientHashes> hashes;  // with run.verify_every
  /// Host memory for runs with checkpoints. Empty if checkpoints access the state in place.
  std::span<float> staging;     // for state on a device (StateStaging)
  std::span<float> snapshot;    // the copy that checkpoint.asynchronous writes
  std::span<SpanRecord> spans;  // host memory for the time line, with run.profile

  /// Products and communicators of the model. Null while measuring.
  struct Links {
    tensor::Gemm* gemm = nullptr;
    comm::Communicator *tensor = nullptr, *sequence = nullptr;
  };

  /// `data_rank` is the rank in the data group.
  Buffers(memory::Arenas& arenas, const deck::Config& config, const Blueprint& blueprint,
          Index data_rank, Index threads, const Links& links);

  /// Returns measuring arenas that have counted these buffers.
  static memory::Arenas measured(const deck::Config& config, const Blueprint& blueprint,
                                 Index data_rank, Index threads);

  /// Return the parameters of unit u that this rank's optimizer updates, and their state.
  T* updated(Index u) const;
  optim::State state_of(Index u) const;

 private:
  zero::Placement optimizer_;
};

/// Returns whether checkpoints access the optimizer's state in place.
inline bool host_reaches_state(const deck::Config& config) {
  return tensor::on_host || offloads(config);
}

// Pinned host memory for copying the optimizer's state from a device to checkpoints and back.

/// Copies on its own stream, which is not ordered with other streams. Before a state is read, the
/// host must have waited for its computation.
class StateStaging : public checkpoint::Staging {
 public:
  /// The number of elements of a run's staging (16 MiB). The size does not depend on the model,
  /// because copying a slot already takes much longer than launching the copy.
  static constexpr Index elements = Index{4} << 20;

  /// `room` is pinned host memory for the two slots, and must outlive the object. Runs with
  /// checkpoints pass planned memory. If `room` is empty, the first use allocates `elements`.
  explicit StateStaging(std::span<float> room);

  std::span<float> slot(std::size_t number) override;
  void bring(std::size_t number, const float* from, std::span<float> to) override;
  void send(std::size_t number, std::span<const float> from, float* to) override;
  void wait(std::size_t number) override;

 private:
  std::span<float> room_;
  Kokkos::View<float*, runtime::HostMemory> own_room_;
  runtime::Execution stream_;
  std::array<runtime::Event, slots> copied_;
};

}  // namespace kzero::engine
