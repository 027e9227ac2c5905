// A minimal second model family: two linear units and a squared error. Unit 0 maps one-hot tokens
// to x = E[token]. Unit 1 computes y = x W + b and compares y with the one-hot targets. Its kernels
// use one thread per result, so that no bit depends on the other results.
#pragma once

#include <optional>

#include "kernels/reduction.hpp"
#include "model/model.hpp"

namespace kzero::tests {

using tensor::Accumulate;
using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

struct ToyShape {
  Index vocab = 0, width = 0, sequence = 0;
};

template <class T>
KOKKOS_INLINE_FUNCTION void store(T& at, float value, Accumulate accumulate) {
  at = static_cast<T>(accumulate == Accumulate::yes ? static_cast<float>(at) + value : value);
}

/// Calls f(i, j) for all i < rows and j < columns, in any order.
template <class F>
void for_each_pair(const Execution& exec, Index rows, Index columns, const F& f) {
  Kokkos::parallel_for(
      "kzero::tests::toy", tensor::Range(exec, 0, rows * columns),
      KOKKOS_LAMBDA(Index at) { f(at / columns, at % columns); });
}

/// x [N,D] = embedding [V,D] of each token.
template <class T>
void toy_look_up(const Execution& exec, Vector<const Token> tokens, Matrix<const T> embedding,
                 Matrix<T> x) {
  for_each_pair(
      exec, x.extent(0), x.extent(1),
      KOKKOS_LAMBDA(Index i, Index j) { x(i, j) = embedding(tokens(i), j); });
}

/// losses [N] = |x W + b - onehot(target)|^2 / 2, and dy [N,V] = scale * that difference.
template <class T>
void toy_compare(const Execution& exec, Matrix<const T> x, Matrix<const T> weight,
                 Vector<const T> bias, Vector<const Token> targets, float scale, Matrix<float> dy,
                 Vector<float> losses) {
  for_each_pair(
      exec, x.extent(0), 1, KOKKOS_LAMBDA(Index i, Index) {
        float loss = 0;
        for (Index v = 0; v < static_cast<Index>(dy.extent(1)); ++v) {
          float y = static_cast<float>(bias(v));
          for (Index j = 0; j < static_cast<Index>(x.extent(1)); ++j)
            y += static_cast<float>(x(i, j)) * static_cast<float>(weight(j, v));
          const float difference = y - (targets(i) == v ? 1.0F : 0.0F);
          loss += difference * difference / 2;
          dy(i, v) = scale * difference;
        }
        losses(i) = loss;
      });
}

/// dx [N,D] = dy W^T; dW (=|+=) x^T dy; db (=|+=) the sum of dy's rows.
template <class T>
void toy_compare_backward(const Execution& exec, Matrix<const T> x, Matrix<const T> weight,
                          Matrix<const float> dy, Accumulate accumulate, Matrix<T> dx,
                          Matrix<T> dweight, Vector<T> dbias) {
  const Index rows = dy.extent(0), vocab = dy.extent(1), width = x.extent(1);
  for_each_pair(
      exec, rows, width, KOKKOS_LAMBDA(Index i, Index j) {
        float sum = 0;
        for (Index v = 0; v < vocab; ++v) sum += dy(i, v) * static_cast<float>(weight(j, v));
        dx(i, j) = static_cast<T>(sum);
      });
  for_each_pair(
      exec, width, vocab, KOKKOS_LAMBDA(Index j, Index v) {
        float sum = 0;
        for (Index i = 0; i < rows; ++i) sum += static_cast<float>(x(i, j)) * dy(i, v);
        store(dweight(j, v), sum, accumulate);
      });
  for_each_pair(
      exec, 1, vocab, KOKKOS_LAMBDA(Index, Index v) {
        float sum = 0;
        for (Index i = 0; i < rows; ++i) sum += dy(i, v);
        store(dbias(v), sum, accumulate);
      });
}

/// dembedding [V,D] (=|+=) the sum of dx over the rows of each token.
template <class T>
void toy_look_up_backward(const Execution& exec, Vector<const Token> tokens, Matrix<const T> dx,
                          Accumulate accumulate, Matrix<T> dembedding) {
  const Index rows = dx.extent(0);
  for_each_pair(
      exec, dembedding.extent(0), dembedding.extent(1), KOKKOS_LAMBDA(Index v, Index j) {
        float sum = 0;
        for (Index i = 0; i < rows; ++i) {
          if (tokens(i) == v) sum += static_cast<float>(dx(i, j));
        }
        store(dembedding(v, j), sum, accumulate);
      });
}

template <class T>
class ToyModel : public model::Model<T> {
  using Units = model::Units<T>;
  using ConstUnits = model::Units<const T>;

 public:
  ToyModel(memory::Arenas& arenas, const ToyShape& shape, const model::Resources& resources)
      : s_(shape), rows_(resources.batch.batch * shape.sequence) {
    x_ = take(arenas, memory::Category::activations);
    dx_ = take(arenas, memory::Category::workspace);
    const auto floats = [&](Index count) {
      return arenas.take<float>(memory::Category::workspace, count);
    };
    dy_ = Matrix<float>(floats(rows_ * s_.vocab), rows_, s_.vocab);
    losses_ = Vector<float>(floats(rows_), rows_);
    if (!arenas.measuring()) exec_.emplace();
  }

  void forward(Index, ConstUnits parameters, const model::Batch& batch) override {
    toy_look_up<T>(exec(), batch.inputs, embedding(parameters[0]), x_);
  }

  void loss(ConstUnits parameters, const model::Batch& batch, double* sum) override {
    compare(parameters, batch, 0);
    kernels::sum_in_order(exec(), losses_, sum);
  }

  Vector<const float> row_losses(ConstUnits parameters, const model::Batch& batch) override {
    compare(parameters, batch, 0);
    return losses_;
  }

  void token_losses(ConstUnits parameters, const model::Batch& batch,
                    std::span<float> losses) override {
    compare(parameters, batch, 0);
    const Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged> host(losses.data(),
                                                                                losses.size());
    Kokkos::deep_copy(exec(), host, losses_);
    exec().fence("kzero::tests::losses_read");
  }

  void top_tokens(ConstUnits, const model::Batch&, std::span<float>,
                  const kernels::TopTokens&) override {
    KZERO_EXPECT(false);  // it teaches nobody
  }

  void loss_and_gradient(ConstUnits parameters, const model::Batch& batch, float scale,
                         Accumulate accumulate, Units gradients, double* sum) override {
    compare(parameters, batch, scale);
    kernels::sum_in_order(exec(), losses_, sum);
    toy_compare_backward<T>(exec(), x_, weight(parameters[1]), dy_, accumulate, dx_,
                            weight(gradients[1]), bias(gradients[1]));
  }

  void backward(Index, ConstUnits, const model::Batch& batch, Accumulate accumulate,
                Units gradients) override {
    toy_look_up_backward<T>(exec(), batch.inputs, dx_, accumulate, embedding(gradients[0]));
  }

  const Execution& exec() const override { return *exec_; }

 private:
  Matrix<T> take(memory::Arenas& arenas, memory::Category category) const {
    return Matrix<T>(arenas.take<T>(category, rows_ * s_.width), rows_, s_.width);
  }
  void compare(ConstUnits parameters, const model::Batch& batch, float scale) {
    toy_compare<T>(exec(), x_, weight(parameters[1]), bias(parameters[1]), batch.targets, scale,
                   dy_, losses_);
  }
  template <class U>
  Matrix<U> embedding(U* unit) const {
    return Matrix<U>(unit, s_.vocab, s_.width);
  }
  template <class U>
  Matrix<U> weight(U* unit) const {
    return Matrix<U>(unit, s_.width, s_.vocab);
  }
  template <class U>
  Vector<U> bias(U* unit) const {
    return Vector<U>(unit + s_.width * s_.vocab, s_.vocab);
  }

  ToyShape s_;
  Index rows_;
  std::optional<Execution> exec_;  // empty while measuring
  Matrix<T> x_, dx_;               // [N,D]
  Matrix<float> dy_;               // [N,V]
  Vector<float> losses_;           // [N]
};

class ToyDefinition : public model::Definition {
 public:
  explicit ToyDefinition(const ToyShape& shape) : s_(shape) {}

  param::Table table(const model::TensorRank&) const override {
    const auto matrix = [](const char* name, Index rows, Index columns) {
      return param::ParamSpec{name, {rows, columns}, param::Init::normal, 0.1, true};
    };
    return {{"input", {matrix("input.weight", s_.vocab, s_.width)}},
            {"output", {matrix("output.weight", s_.width, s_.vocab), {"output.bias", {s_.vocab}}}}};
  }

  param::Trace training_trace() const override {
    const double product = static_cast<double>(s_.width) * static_cast<double>(s_.vocab);
    return {{param::Pass::forward, 0, {parameters(0)}, {x}},
            {param::Pass::loss, 1, {parameters(1), x}, {dx, gradient(1)}, {6 * product}},
            {param::Pass::backward, 0, {dx}, {gradient(0)}}};
  }

  param::Trace validation_trace() const override {
    return {{param::Pass::forward, 0, {parameters(0)}, {x}},
            {param::Pass::loss, 1, {parameters(1), x}, {}}};
  }

  std::vector<model::ModelCollective> tensor_collectives(const model::TensorRank&, Index,
                                                         Dtype) const override {
    return {};
  }
  model::Benchmark benchmark(Index, Index sequence) const override {
    return {std::make_shared<ToyDefinition>(ToyShape{s_.vocab, s_.width, sequence}), 0, 1};
  }

 private:
  inline static const param::Value x{param::ValueKind::activation, -1, "x", 0};
  inline static const param::Value dx{param::ValueKind::activation, -1, "dx", 0};
  static param::Value parameters(Index u) { return {param::ValueKind::parameters, u, {}, 0}; }
  static param::Value gradient(Index u) { return {param::ValueKind::gradient, u, {}, 1}; }

  template <class T>
  std::unique_ptr<model::Model<T>> made(memory::Arenas& arenas,
                                        const model::Resources& resources) const {
    return std::make_unique<ToyModel<T>>(arenas, s_, resources);
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

  ToyShape s_;
};

/// Defines the family's model. Vocabulary, width and sequence come from the deck. The other [model]
/// keys are ignored.
inline std::shared_ptr<const model::Definition> define_toy(const deck::Config& config) {
  const deck::Model& m = config.model;
  return std::make_shared<ToyDefinition>(ToyShape{m.vocab, m.hidden, m.sequence});
}

}  // namespace kzero::tests
