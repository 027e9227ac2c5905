#include "plan/block_rate.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"
#include "model/model.hpp"
#include "param/flat_layout.hpp"
#include "tensor/gemm.hpp"

namespace kzero::plan {

namespace {

using memory::Category;

constexpr Index max_width = 1024;        // wider blocks only take longer; their rate is the same
constexpr Index first_tokens = 16;       // for the first attempt
constexpr double enough_seconds = 0.05;  // per run; shorter runs are followed by a larger attempt

/// A small model with parameters, gradients and a micro-batch. One unit is timed.
template <class T>
class Bench {
 public:
  Bench(memory::Arenas& arenas, const model::Benchmark& benchmark, Index tokens,
        const model::BatchShape& shape, tensor::Gemm* gemm)
      : unit_(benchmark.unit),
        layout_(benchmark.model->table({}), 1),
        parameters_(arenas.take<T>(Category::parameters, layout_.total())),
        gradients_(arenas.take<T>(Category::gradients, layout_.total())),
        tokens_(arenas.take<Token>(Category::io, tokens), static_cast<std::size_t>(tokens)),
        batch_{tokens_, tokens_, {}},
        loss_(arenas.take<double>(Category::io, 1)),
        model_(benchmark.model->make<T>(arenas, {shape, gemm})) {
    for (const param::UnitLayout& unit : layout_.units()) {
      parameters_of_.push_back(parameters_ + unit.begin);
      gradients_of_.push_back(gradients_ + unit.begin);
    }
  }

  /// Initializes all inputs of the unit: the parameters, and its forward and backward inputs.
  void prepare() {
    const auto& exec = model_->exec();
    kernels::fill<T>(exec, {parameters_, static_cast<std::size_t>(layout_.total())}, 0.01F);
    Kokkos::deep_copy(exec, tokens_, Token{0});
    const Index head = static_cast<Index>(parameters_of_.size()) - 1;
    for (Index u = 0; u < head; ++u) model_->forward(u, parameters_of_, batch_);
    model_->loss_and_gradient(parameters_of_, batch_, 1.0F, tensor::Accumulate::no, gradients_of_,
                              loss_);
    for (Index u = head - 1; u > unit_; --u) backward(u);
    run();
  }

  /// Runs the unit forward and backward.
  void run() {
    model_->forward(unit_, parameters_of_, batch_);
    backward(unit_);
    model_->exec().fence("kzero::plan::block_done");
  }

 private:
  void backward(Index u) {
    model_->backward(u, parameters_of_, batch_, tensor::Accumulate::no, gradients_of_);
  }

  Index unit_;
  param::FlatLayout layout_;
  T *parameters_, *gradients_;
  tensor::Vector<Token> tokens_;
  model::Batch batch_;
  double* loss_;
  std::unique_ptr<model::Model<T>> model_;
  std::vector<const T*> parameters_of_;  // per unit
  std::vector<T*> gradients_of_;
};

/// Returns the seconds for one unit. A run that is too short is not repeated until its times agree,
/// unless it is `last`.
template <class T>
Timing time_of(const model::Benchmark& benchmark, Index tokens, const model::BatchShape& shape,
               tensor::Gemm& gemm, bool last) {
  memory::Arenas measured;
  static_cast<void>(Bench<T>(measured, benchmark, tokens, shape, nullptr));
  memory::Ledger ledger;
  memory::Arenas arenas(measured, ledger);
  Bench<T> bench(arenas, benchmark, tokens, shape, &gemm);
  bench.prepare();
  const Clock clock = shape.threads == 1 ? Clock::core : Clock::wall;
  return fastest_of(clock, [&] { bench.run(); }, {.enough = last ? 0 : enough_seconds});
}

/// The full micro-batch is measured last, and only if no part of it takes long enough.
template <class T>
MeasuredRate rate(const deck::Config& config, Index threads) {
  const auto gemm = tensor::make_gemm(config.run.gemm);
  const auto definition = model::define(config);
  const Index sequence = config.model.sequence, all = config.train.micro_batch * sequence;
  for (Index tokens = first_tokens;; tokens *= 4) {
    tokens = std::min(tokens, all);
    const Index length = std::min(tokens, sequence), batch = tokens / length;
    const model::Benchmark benchmark = definition->benchmark(max_width, length);
    const bool is_last = tokens == all;
    const Timing time = time_of<T>(benchmark, batch * length,
                                   {.batch = batch,
                                    .threads = threads,
                                    .attention = config.run.attention,
                                    .fixed_order = config.run.deterministic},
                                   *gemm, is_last);
    if (time.seconds < enough_seconds && !is_last) continue;
    return {benchmark.flops_per_token * static_cast<double>(batch * length) / time.seconds,
            time.spread};
  }
}

}  // namespace

MeasuredRate block_rate(const deck::Config& config, Index threads) {
  return with_type(config.train.precision,
                   [&](auto type) { return rate<decltype(type)>(config, threads); });
}

}  // namespace kzero::plan
