// Everything a rank holds during a run, laid out in one place: run on measuring arenas this is the
// memory plan, run on allocated ones it is the run.
#pragma once

#include <memory>
#include <optional>

#include "memory/arenas.hpp"
#include "model/model.hpp"
#include "optim/optimizer.hpp"
#include "train/batches.hpp"
#include "train/blueprint.hpp"
#include "zero/gradient_store.hpp"
#include "zero/parameter_store.hpp"

namespace kzero::train {

template <class T>
struct Buffers {
  zero::ParameterStore<T> parameters;
  zero::GradientStore<T> gradients;
  zero::FlatBuffer<float> master;  // none in an fp32 run without offload: the parameters themselves
  zero::FlatBuffer<float> first, second;
  std::optional<optim::CpuOffloadOptimizer<T>> offload_optimizer;  // with offload from a device
  tensor::Vector<float> partial;                                   // of the gradient norm
  std::unique_ptr<model::Model<T>> model;
  Batches batches;
  tensor::Vector<float> snapshot;  // of the owned state, on hosts with checkpoint.asynchronous

  /// `data_rank` is this rank's in its data group; `gemm` and `tensor` are null while measuring.
  Buffers(memory::Arenas& arenas, const deck::Config& config, const Blueprint& blueprint,
          Index data_rank, Index threads, tensor::Gemm* gemm, comm::Communicator* tensor);

  /// The parameters that this rank's optimizer updates, from the first of unit u, and their state.
  T* updated(Index u) const;
  optim::State state(Index u) const;

 private:
  zero::Placement optimizer_;
};

/// Whether the optimizer's state leaves the device; where there is none it is on the host anyway.
inline bool offloads(const deck::Config& config) {
  return config.zero.offload == deck::Offload::host && !tensor::on_host;
}

/// Bytes a rank will hold, by category; the deck is resolved. Nothing is allocated.
memory::Bytes planned_bytes(const deck::Config& config, const Machine& machine,
                            model::Family family = model::define);
memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads);

}  // namespace kzero::train
