#include "plan/block_rate.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/initialize.hpp"
#include "model/block.hpp"
#include "param/flat_layout.hpp"
#include "train/gemm_backend.hpp"

namespace kzero::plan {

namespace {

using memory::Category;
using tensor::Matrix;
using Clock = std::chrono::steady_clock;

constexpr Index most_width = 1024;       // wider blocks run at the same rate and only take longer
constexpr Index first_tokens = 16;       // of the first try
constexpr double enough_seconds = 0.05;  // of a run; shorter ones are followed by a larger try
constexpr int least_runs = 2, most_runs = 6;
constexpr double runs_seconds = 0.4;

/// A block with all it needs.
template <class T>
struct Parts {
  Index elements;
  T *parameters, *gradients;
  model::Context<T> context;
  model::BlockActivations<T> saved;
  Matrix<T> x, out, dx;

  Parts(memory::Arenas& arenas, const deck::Model& m, const model::BatchShape& batch,
        tensor::Gemm* gemm)
      : elements(model::gpt_table(m)[1].elements()),
        parameters(arenas.take<T>(Category::parameters, elements)),
        gradients(arenas.take<T>(Category::gradients, elements)),
        context(arenas, gemm, model::GptShape(m), batch),
        saved{{arenas, context.shape, batch.batch}, {arenas, context.shape, batch.batch}},
        x(stream(arenas)),
        out(stream(arenas)),
        dx(stream(arenas)) {}

  Matrix<T> stream(memory::Arenas& arenas) const {
    const Index width = context.shape.hidden;
    return {arenas.take<T>(Category::activations, context.rows * width),
            static_cast<std::size_t>(context.rows), static_cast<std::size_t>(width)};
  }
};

template <class T>
void run(Parts<T>& parts) {
  const auto& shape = parts.context.shape;
  const model::BlockParams<const T> parameters(shape, parts.parameters);
  model::block_forward<T>(parts.context, parameters, parts.x, parts.saved, parts.out);
  model::block_backward<T>(parts.context, parameters, parts.x, parts.saved,
                           kernels::Update::overwrite,
                           model::BlockParams<T>(shape, parts.gradients), parts.dx);
  parts.context.exec->fence("kzero::plan::block_done");
}

/// Seconds of one block, the fastest of some runs after one that warms up.
template <class T>
double seconds_of(const deck::Model& m, const model::BatchShape& batch, tensor::Gemm& gemm) {
  memory::Arenas measured;
  static_cast<void>(Parts<T>(measured, m, batch, nullptr));
  memory::Ledger ledger;
  memory::Arenas arenas(measured, ledger);
  Parts<T> parts(arenas, m, batch, &gemm);
  const auto fill = [&](T* data, Index count) {
    kernels::fill<T>(*parts.context.exec, {data, static_cast<std::size_t>(count)}, 0.01F);
  };
  fill(parts.parameters, parts.elements);
  fill(parts.x.data(), parts.x.size());
  fill(parts.dx.data(), parts.dx.size());
  run(parts);
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int i = 0; i < least_runs || (i < most_runs && spent < runs_seconds); ++i) {
    const auto begin = Clock::now();
    run(parts);
    const double taken = std::chrono::duration<double>(Clock::now() - begin).count();
    best = std::min(best, taken);
    spent += taken;
  }
  return best;
}

/// One block of the deck's proportions, no wider than most_width in any of them, so that its memory
/// is small whatever the deck's is.
deck::Model narrowed(const deck::Config& config) {
  deck::Model m = config.model;
  const Index head = std::min(m.hidden / m.heads, most_width);
  m.heads = std::min(m.heads, std::max<Index>(1, most_width / head));
  m.feed_forward =
      std::clamp<Index>(m.feed_forward * (m.heads * head) / m.hidden, 1, 16 * most_width);
  m.hidden = m.heads * head;
  m.layers = 1;
  m.vocab = 1;
  return m;
}

/// The whole micro-batch is tried last, and not at all where a part of it takes long enough.
template <class T>
double rate(const deck::Config& config, Index threads) {
  const auto gemm = train::make_gemm_backend(config.run.gemm);
  deck::Model m = narrowed(config);
  const Index sequence = m.sequence, all = config.train.micro_batch * sequence;
  for (Index tokens = first_tokens;; tokens *= 4) {
    tokens = std::min(tokens, all);
    m.sequence = std::min(tokens, sequence);
    const Index batch = tokens / m.sequence;
    const double seconds = seconds_of<T>(m, {batch, threads}, *gemm);
    if (seconds < enough_seconds && tokens < all) continue;
    deck::Model counted = m;
    counted.vocab = 0;  // no head
    return model::flops_per_token(counted) * static_cast<double>(batch * m.sequence) / seconds;
  }
}

}  // namespace

double block_rate(const deck::Config& config, Index threads) {
  return with_type(config.train.precision,
                   [&](auto type) { return rate<decltype(type)>(config, threads); });
}

}  // namespace kzero::plan
