// The deck's model on a machine with a faulty rank. The run must detect the fault and name the
// rank's node.
#pragma once

#include <mpi.h>

#include <functional>

#include "model/model.hpp"
#include "support/training.hpp"

namespace kzero::tests {

/// The fault of one rank of the launch.
struct Fault {
  enum class Place {
    gradient,  // one bit of a unit's gradient, flipped after backward has written it
    input,     // the first unit reads wrong tokens
  };
  int rank = -1;  // -1: no faulty rank
  Place place = Place::gradient;
  Index unit = 0;
  /// Selects the faulty micro-batches by their number on the rank, counted from 0.
  std::function<bool(Index)> strikes = [](Index) { return true; };
};

inline Fault fault;
inline Index computed = 0;  // micro-batches started on this rank

inline bool strikes(Fault::Place place, Index unit) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank == fault.rank && place == fault.place && unit == fault.unit &&
         fault.strikes(computed - 1);
}

template <class T>
void flip_lowest_bit(const tensor::Execution& exec, T* element) {
  Kokkos::parallel_for(
      "kzero::tests::flip_bit", tensor::Range(exec, 0, 1),
      KOKKOS_LAMBDA(Index) { *reinterpret_cast<unsigned char*>(element) ^= 1U; });
}

template <class T>
class FaultyModel : public model::Model<T> {
  using Units = model::Units<T>;
  using ConstUnits = model::Units<const T>;

 public:
  explicit FaultyModel(std::unique_ptr<model::Model<T>> inner) : inner_(std::move(inner)) {}

  void forward(Index u, ConstUnits parameters, const model::Batch& batch) override {
    if (u == 0) ++computed;
    model::Batch read = batch;
    if (strikes(Fault::Place::input, u)) read.inputs = batch.targets;
    inner_->forward(u, parameters, read);
  }

  void loss(ConstUnits parameters, const model::Batch& batch, double* sum) override {
    inner_->loss(parameters, batch, sum);
  }

  tensor::Vector<const float> row_losses(ConstUnits parameters,
                                         const model::Batch& batch) override {
    return inner_->row_losses(parameters, batch);
  }

  void token_losses(ConstUnits parameters, const model::Batch& batch,
                    std::span<float> losses) override {
    inner_->token_losses(parameters, batch, losses);
  }

  void top_tokens(ConstUnits parameters, const model::Batch& batch, std::span<float> losses,
                  const kernels::TopTokens& top) override {
    inner_->top_tokens(parameters, batch, losses, top);
  }

  void loss_and_gradient(ConstUnits parameters, const model::Batch& batch, float scale,
                         tensor::Accumulate accumulate, Units gradients, double* sum) override {
    inner_->loss_and_gradient(parameters, batch, scale, accumulate, gradients, sum);
    spoil(std::ssize(gradients) - 1, gradients);
  }

  void backward(Index u, ConstUnits parameters, const model::Batch& batch,
                tensor::Accumulate accumulate, Units gradients) override {
    inner_->backward(u, parameters, batch, accumulate, gradients);
    spoil(u, gradients);
  }

  const tensor::Execution& exec() const override { return inner_->exec(); }
  model::Arithmetic arithmetic() const override { return inner_->arithmetic(); }

 private:
  void spoil(Index u, Units gradients) {
    if (strikes(Fault::Place::gradient, u)) flip_lowest_bit(exec(), gradients[u] + 1);
  }

  std::unique_ptr<model::Model<T>> inner_;
};

class FaultyDefinition : public model::Definition {
 public:
  explicit FaultyDefinition(std::shared_ptr<const model::Definition> inner)
      : inner_(std::move(inner)) {}

  param::Table table(const model::TensorRank& tensor) const override {
    return inner_->table(tensor);
  }
  param::Trace training_trace() const override { return inner_->training_trace(); }
  param::Trace validation_trace() const override { return inner_->validation_trace(); }
  std::vector<model::ModelCollective> tensor_collectives(const model::TensorRank& tensor,
                                                         Index sequences,
                                                         Dtype precision) const override {
    return inner_->tensor_collectives(tensor, sequences, precision);
  }
  model::Benchmark benchmark(Index max_width, Index sequence) const override {
    return inner_->benchmark(max_width, sequence);
  }

 private:
  template <class T>
  std::unique_ptr<model::Model<T>> made(memory::Arenas& arenas,
                                        const model::Resources& resources) const {
    return std::make_unique<FaultyModel<T>>(inner_->make<T>(arenas, resources));
  }
  std::unique_ptr<model::Model<float>> make_as(float, memory::Arenas& arenas,
                                               const model::Resources& r) const override {
    return made<float>(arenas, r);
  }
  std::unique_ptr<model::Model<bf16>> make_as(bf16, memory::Arenas& arenas,
                                              const model::Resources& r) const override {
    return made<bf16>(arenas, r);
  }
  std::unique_ptr<model::Model<fp16>> make_as(fp16, memory::Arenas& arenas,
                                              const model::Resources& r) const override {
    return made<fp16>(arenas, r);
  }

  std::shared_ptr<const model::Definition> inner_;
};

inline std::shared_ptr<const model::Definition> define_faulty(const deck::Config& config) {
  return std::make_shared<FaultyDefinition>(model::define(config));
}

}  // namespace kzero::tests
