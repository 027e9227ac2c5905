#include "model/head.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/initialize.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::tests {
namespace {

using kernels::Update;
using model::Context;

constexpr Index head_rows = 128;

deck::Model small_model(Index vocab = 48) {
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

/// A head with its input, on arenas of its own. The context is of two micro-batches' rows, so
/// that one of them can be a single chunk.
template <class T>
class Head {
 public:
  explicit Head(Index chunk)
      : gemm_(tensor::make_gemm(deck::GemmBackend::automatic)),
        arenas_(measured(), ledger_),
        parts_(arenas_, gemm_.get()) {
    Context<T>& c = parts_.context;
    EXPECT_GE(c.chunk, head_rows) << "one chunk must hold a micro-batch";
    c.rows = c.stream = head_rows;
    c.chunk = chunk;
    if (chunk == head_rows) c.output_gradient = nullptr;
  }

  /// The gradient by the output projection, of `before` where it is added.
  std::vector<T> gradient(Update update, const std::vector<T>& before) const {
    std::mt19937 random(5);
    const model::TransformerShape s(small_model());
    const Index d = s.hidden;
    const Guarded<T> x(draw<T>(random, head_rows * d, 1)),
        norm(std::vector<T>(2 * d, static_cast<T>(1.0F)));
    const Guarded<T> output(draw<T>(random, s.vocab * d, 0.02F)), dx(head_rows * d), dnorm(2 * d);
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
        x.matrix(head_rows, d), targets.vector(), 1.0F, parts_.saved, update,
        params(dnorm.data(), doutput.data()), dx.matrix(head_rows, d));
    Kokkos::fence("kzero::tests::head_done");
    return doutput.host();
  }

  Context<T>& context() { return parts_.context; }

 private:
  struct Parts {
    Context<T> context;
    model::HeadSaved<T> saved;

    Parts(memory::Arenas& arenas, tensor::Gemm* gemm)
        : context(arenas, gemm, small_model(), {2, 1}),
          saved(arenas, model::TransformerShape(small_model()), 1) {}
  };

  static memory::Arenas measured() {
    memory::Arenas arenas;
    Parts(arenas, nullptr);
    return arenas;
  }

  std::unique_ptr<tensor::Gemm> gemm_;
  memory::Ledger ledger_;
  memory::Arenas arenas_;
  Parts parts_;
};

/// The largest difference of two sums, beyond what their fp32 additions may differ by, in steps
/// between neighbouring numbers of T. A sum of a column has a term for each row and the number it
/// is added to; a gradient by a logit is at most 1, a normalised element with bias at most sqrt(D)
/// + 1.
template <class T>
double largest_distance(const std::vector<T>& a, const std::vector<T>& b) {
  const double largest_term = std::sqrt(static_cast<double>(small_model().hidden)) + 1;
  const double reordered =
      2 * gamma(head_rows + 1) * static_cast<double>(head_rows + 1) * largest_term;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double x = as_double(a[i]), y = as_double(b[i]);
    const double size = std::max({std::abs(x), std::abs(y), 0x1p-14});
    const double step = 2 * round_off<T> * std::exp2(std::floor(std::log2(size)));
    most = std::max(most, (std::abs(x - y) - reordered) / step);
  }
  return most;
}

template <class T>
class HeadGradient : public testing::Test {};
using SixteenBits = testing::Types<bf16, fp16>;
TYPED_TEST_SUITE(HeadGradient, SixteenBits, );

// Sums of one chunk and of many differ in fp32 by their order, which moves a rounding to 16 bits by
// one step at most. Rounding each chunk, as a context without the fp32 sum does, moves it further.
TYPED_TEST(HeadGradient, IsRoundedOnceWhateverTheChunks) {
  using T = TypeParam;
  const Index count = small_model().vocab * small_model().hidden;
  std::mt19937 random(7);
  const std::vector<T> before = draw<T>(random, count, 0.5F);
  const Head<T> whole(head_rows);
  Head<T> rounding(5);
  rounding.context().output_gradient = nullptr;
  for (const Update update : {Update::overwrite, Update::add}) {
    const auto expected = whole.gradient(update, before);
    for (const Index chunk : {5, 64}) {
      const auto found = Head<T>(chunk).gradient(update, before);
      EXPECT_LE(largest_distance(found, expected), 1) << chunk << " rows at once";
    }
    EXPECT_GT(largest_distance(rounding.gradient(update, before), expected), 1)
        << "the case does not show roundings between";
  }
}

template <class T>
Index workspace(Index batch, Index sequence, Index vocab) {
  deck::Model m = small_model(vocab);
  m.sequence = sequence;
  memory::Arenas arenas;
  const Context<T> context(arenas, nullptr, m, {batch, 1});
  return arenas.bytes()[static_cast<std::size_t>(memory::Category::workspace)];
}

// The blocks' scratch is larger than these chunks of logits, so it hides them.
TEST(HeadMemory, HasASumInFp32OnlyWhereChunksAreAddedIn16Bits) {
  const Index added = 16 * small_model().hidden * 4;
  EXPECT_EQ(workspace<bf16>(1, head_rows, 32) - workspace<bf16>(1, head_rows, 16), added);
  EXPECT_EQ(workspace<fp16>(1, head_rows, 32) - workspace<fp16>(1, head_rows, 16), added);
  EXPECT_EQ(workspace<float>(1, head_rows, 32) - workspace<float>(1, head_rows, 16), 0);
  EXPECT_EQ(workspace<bf16>(1, 1, 32) - workspace<bf16>(1, 1, 16), 0) << "a single chunk";
}

}  // namespace
}  // namespace kzero::tests
