// A head with its input, for tests of its GEMMs and of the memory of its logits.
#pragma once

#include <gtest/gtest.h>

#include <random>

#include "kernels/initialize.hpp"
#include "model/head.hpp"
#include "support/guarded.hpp"

namespace kzero::tests {

constexpr Index head_rows = 128;

inline deck::Model small_model(Index vocab = 48) {
  deck::Model model;
  model.layers = 1, model.hidden = 24, model.heads = 2, model.feed_forward = 96;
  model.sequence = head_rows, model.vocab = vocab;
  return model;
}

template <class T>
std::vector<T> draw(std::mt19937& random, Index count, float std) {
  std::normal_distribution<float> normal(0, std);
  std::vector<T> values;
  for (Index i = 0; i < count; ++i) values.push_back(static_cast<T>(normal(random)));
  return values;
}

/// The results of a head on fixed inputs.
template <class T>
struct HeadResults {
  std::vector<float> losses;
  std::vector<T> doutput, dx;
};

/// A head with its own arenas, except that the logits and the sum of chunks are in guarded memory,
/// the logits with NaN between padded rows. The context has the rows of two micro-batches, so that
/// one micro-batch can be a single chunk.
template <class T>
class Head {
 public:
  /// A small model. Rows are contiguous and have no more columns unless these are given. A slice is
  /// the chunk.
  Head(tensor::Gemm& gemm, Index chunk, Index vocab = 48, Index stride = 0, Index columns = 0)
      : Head(gemm, small_model(vocab),
             {chunk, stride == 0 ? vocab : stride, columns == 0 ? vocab : columns, chunk}) {}

  /// Any model with sequences of head_rows.
  Head(tensor::Gemm& gemm, const deck::Model& deck, const model::LogitsChunk& chunk)
      : deck_(deck),
        chunk_(chunk),
        arenas_(measured(deck_), ledger_),
        parts_(arenas_, &gemm, deck_),
        logits_((dtype_of<T> == Dtype::fp32 ? chunk.rows : chunk.slice) * chunk.stride),
        dlogits_(chunk.rows * chunk.stride),
        output_gradient_(chunk.columns * deck.hidden) {
    Context& c = parts_.context;
    EXPECT_GE(c.chunk.rows, head_rows) << "one chunk must hold a micro-batch";
    c.rows = c.stream_rows = head_rows;
    c.chunk = chunk_;
    c.logits = logits_.data();
    if constexpr (dtype_of<T> == Dtype::fp32) {
      c.dlogits = logits_.data();
    } else {
      c.dlogits = dlogits_.data();
      c.output_gradient = chunk.rows < head_rows ? output_gradient_.data() : nullptr;
    }
  }

  /// Computes losses and gradients. `before` is the initial value of the output projection's
  /// gradient, to which Accumulate::yes adds. The output projection's matrix is followed by numbers
  /// that would change any result to which they contribute.
  HeadResults<T> run(tensor::Accumulate accumulate, const std::vector<T>& before,
                     const kernels::LossTerms& terms = {}) const {
    std::mt19937 random(5);
    const model::TransformerShape s(deck_);
    const Index d = s.hidden;
    const Guarded<T> x(draw<T>(random, head_rows * d, 1)),
        norm(std::vector<T>(2 * d, static_cast<T>(1.0F)));
    std::vector<T> rows = draw<T>(random, s.vocab * d, 0.02F);
    rows.resize(chunk_.columns * d, static_cast<T>(1e4F));
    const Guarded<T> output(rows), dx(head_rows * d), dnorm(2 * d);
    const Guarded<T> doutput(before);
    std::vector<Token> drawn(head_rows);
    for (Token& token : drawn) token = static_cast<Token>(random() % 4);
    const Guarded<Token> targets(drawn);
    const auto params = [&]<class U>(U* ln, U* table) {
      return model::HeadParams<U>{
          {{ln, static_cast<std::size_t>(d)}, {ln + d, static_cast<std::size_t>(d)}},
          {table, static_cast<std::size_t>(s.vocab), static_cast<std::size_t>(d)}};
    };
    kernels::fill<T>({}, dnorm.vector(), 0);
    model::head_forward_backward<T>(
        parts_.context,
        params(static_cast<const T*>(norm.data()), static_cast<const T*>(output.data())),
        x.matrix(head_rows, d), targets.vector(), {terms}, parts_.saved, accumulate,
        params(dnorm.data(), doutput.data()), dx.matrix(head_rows, d));
    Kokkos::fence("kzero::tests::head_done");
    const auto& losses = parts_.context.losses;
    return {from_device(losses.data(), head_rows), doutput.host(), dx.host()};
  }

  /// Returns the gaps between the rows of the logits and, in 16 bits, of their gradient.
  std::vector<float> between_rows() const {
    std::vector<float> gaps;
    const bool in_place = dtype_of<T> == Dtype::fp32;
    append_gaps(logits_, in_place ? chunk_.rows : chunk_.slice, gaps);
    if (!in_place) append_gaps(dlogits_, chunk_.rows, gaps);
    return gaps;
  }

  model::Context<T>& context() { return parts_.context; }

 private:
  using Context = model::Context<T>;
  struct Parts {
    Context context;
    model::HeadSaved<T> saved;

    Parts(memory::Arenas& arenas, tensor::Gemm* gemm, const deck::Model& deck)
        : context(arenas, gemm, model::TransformerShape(deck), deck, {2, 1}, {}),
          saved(arenas, model::TransformerShape(deck), 1) {}
  };

  static memory::Arenas measured(const deck::Model& deck) {
    memory::Arenas arenas;
    Parts(arenas, nullptr, deck);
    return arenas;
  }

  template <class U>
  void append_gaps(const Guarded<U>& memory, Index rows, std::vector<float>& gaps) const {
    const auto all = memory.host();
    for (Index i = 0; i < rows; ++i) {
      for (Index j = chunk_.columns; j < chunk_.stride; ++j)
        gaps.push_back(static_cast<float>(all[i * chunk_.stride + j]));
    }
  }

  deck::Model deck_;
  model::LogitsChunk chunk_;
  memory::Ledger ledger_;
  memory::Arenas arenas_;
  Parts parts_;
  Guarded<float> logits_;
  Guarded<T> dlogits_;
  Guarded<float> output_gradient_;
};

}  // namespace kzero::tests
