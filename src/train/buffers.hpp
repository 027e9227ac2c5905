// Everything a rank holds during a run, laid out in one place: run on measuring arenas this is the
// memory plan, run on allocated ones it is the run.
#pragma once

#include "deck/config.hpp"
#include "memory/arenas.hpp"
#include "model/gpt.hpp"
#include "optim/optimizer.hpp"
#include "param/flat_layout.hpp"
#include "train/batches.hpp"
#include "zero/bucket.hpp"
#include "zero/flat_buffer.hpp"

namespace kzero::train {

/// Who computes: of a launch, or of one that is only planned.
struct Machine {
  Index data_ranks = 1;
  Index threads = 1;
};

template <class T>
struct Buffers {
  zero::FlatBuffer<T> parameters;
  zero::FlatBuffer<T> gradients;
  zero::FlatBuffer<float> first, second;
  float* master;  // [layout.total]; the parameters themselves in an fp32 run
  zero::Bucket bucket;
  tensor::Vector<float> partial;  // of the gradient norm
  model::Gpt<T> model;
  Batches batches;

  Buffers(memory::Arenas& arenas, const deck::Config& config, const param::FlatLayout& layout,
          const Machine& machine, tensor::Gemm* gemm);

  /// The fp32 state of unit u, from its first element.
  optim::State state(const param::UnitLayout& unit) const {
    return {master + unit.begin, first.data() + unit.begin, second.data() + unit.begin};
  }
};

/// Bytes a rank will hold, by category; the deck is resolved. Nothing is allocated.
memory::Bytes planned_bytes(const deck::Config& config, const Machine& machine);

}  // namespace kzero::train
