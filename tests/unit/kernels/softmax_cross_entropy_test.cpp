#include "kernels/softmax_cross_entropy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

constexpr float scale = 0.037F;  // no power of two

struct Expected {
  Bounded loss;
  std::vector<Bounded> softmax;  // unscaled
};

Expected reference(const float* row, Index vocab, Token target) {
  double largest = -INFINITY;
  for (Index j = 0; j < vocab; ++j) largest = std::max(largest, as_double(row[j]));
  double total = 0, total_error = 0;
  std::vector<Bounded> terms;
  for (Index j = 0; j < vocab; ++j) {
    const double below = as_double(row[j]) - largest, e = std::exp(below);
    // The rounding of the difference acts on the exponent; below -87 the kernel's exponential is
    // zero.
    const double error =
        e * (u * std::abs(below) + tests::exponential_error) + (below < -86 ? e : 0);
    terms.push_back({e, error});
    total += e;
    total_error += error;
  }
  total_error += gamma(vocab) * (total + total_error);
  const double relative = total_error / total, log_total = std::log(total);
  const double loss = largest + log_total - as_double(row[target]);
  // log: its argument's relative error, and two units in the last place of its own.
  Expected out{{loss, relative + 4 * u * std::abs(log_total) + u * std::abs(largest + log_total) +
                          u * std::abs(loss) + u * relative},
               {}};
  for (const auto& [e, error] : terms) {
    out.softmax.push_back({e / total, error / total + e / total * (relative + gamma(4))});
  }
  return out;
}

template <class T>
std::vector<Bounded> gradient(const Expected& expected, Token target) {
  std::vector<Bounded> out;
  for (std::size_t j = 0; j < expected.softmax.size(); ++j) {
    const auto [p, error] = expected.softmax[j];
    const double s = as_double(scale), hot = j == static_cast<std::size_t>(target) ? 1 : 0;
    const double value = s * (p - hot);
    out.push_back(stored<T>(value, s * error + u * std::abs(value)));
  }
  return out;
}

struct Case {
  Index rows, vocab;
  std::vector<float> logits;
  std::vector<Token> targets;
  std::string name;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Index rows : {1, 7, 33}) {
    for (const Index vocab : {1, 101, 1000, 151936}) {
      if (vocab > 1000 && rows != 7) continue;  // once is enough, and slow
      Case c{rows, vocab, numbers<float>(rows * vocab, 1, 5), {}, ""};
      for (Index i = 0; i < rows; ++i) c.targets.push_back(static_cast<Token>(i * 21737 % vocab));
      c.targets.back() = static_cast<Token>(vocab - 1);
      c.name = std::to_string(rows) + " x " + std::to_string(vocab);
      all.push_back(c);
      std::fill(c.logits.begin(), c.logits.end(), -3.25F);
      c.name += " equal";
      all.push_back(c);
      for (std::size_t i = 0; i < c.logits.size(); ++i) c.logits[i] = i % 3 == 0 ? 80.0F : -80.0F;
      c.name += " extreme";
      all.push_back(c);
    }
  }
  return all;
}

/// Losses and gradients of one case; T is float and the gradient in place of the logits if
/// `dlogits` is null.
template <class T>
void check(const Case& c, const Guarded<float>& logits, const Guarded<T>& dlogits) {
  const Guarded<Token> targets(c.targets);
  const Guarded<float> losses(c.rows);
  cross_entropy_with_gradient<T>(Execution(), logits.matrix(c.rows, c.vocab), targets.vector(),
                                 scale, losses.vector(), dlogits.matrix(c.rows, c.vocab));
  std::vector<Bounded> loss, d;
  for (Index i = 0; i < c.rows; ++i) {
    const Expected e = reference(&c.logits[i * c.vocab], c.vocab, c.targets[i]);
    loss.push_back(e.loss);
    for (const Bounded b : gradient<T>(e, c.targets[i])) d.push_back(b);
  }
  expect_close(losses.host(), loss, c.name + " loss");
  expect_close(dlogits.host(), d, c.name + " dlogits");
}

template <class T>
class CrossEntropy : public testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, Elements, );

TYPED_TEST(CrossEntropy, LossAndGradientMatchThePlainLoop) {
  for (const Case& c : cases()) {
    const Guarded<float> logits(c.logits);
    const Guarded<TypeParam> dlogits(c.rows * c.vocab);
    check<TypeParam>(c, logits, dlogits);
  }
}

TEST(CrossEntropyInPlace, GradientMayReplaceTheLogits) {
  for (const Case& c : cases()) {
    const Guarded<float> logits(c.logits);
    check<float>(c, logits, logits);
  }
}

TEST(CrossEntropyForward, MatchesThePlainLoopAndLeavesTheLogits) {
  for (const Case& c : cases()) {
    const Guarded<float> logits(c.logits), losses(c.rows);
    const Guarded<Token> targets(c.targets);
    cross_entropy_forward(Execution(), logits.matrix(c.rows, c.vocab), targets.vector(),
                          losses.vector());
    std::vector<Bounded> loss;
    for (Index i = 0; i < c.rows; ++i) {
      loss.push_back(reference(&c.logits[i * c.vocab], c.vocab, c.targets[i]).loss);
    }
    expect_close(losses.host(), loss, c.name);
    EXPECT_TRUE(tests::same_bits(logits.host(), c.logits));
  }
}

TEST(CrossEntropyForward, ANonFiniteLogitMakesTheLossNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    for (const Index at : {0, 50, 100}) {
      auto values = numbers<float>(101, 1);
      values[at] = bad;
      const Guarded<float> logits(values), losses(1);
      const Guarded<Token> targets(std::vector<Token>{3});
      cross_entropy_forward(Execution(), logits.matrix(1, 101), targets.vector(), losses.vector());
      EXPECT_FALSE(std::isfinite(losses.host()[0])) << bad << " at " << at;
    }
  }
}

}  // namespace
// and each rank's columns of the gradient are those of the whole.
TYPED_TEST(CrossEntropy, OfColumnsCutOverRanksMatchesThePlainLoop) {
  for (const Case& c : cases()) {
    std::vector<Bounded> loss;
    std::vector<std::vector<Bounded>> rows;
    for (Index i = 0; i < c.rows; ++i) {
      const Expected e = reference(&c.logits[i * c.vocab], c.vocab, c.targets[i]);
      loss.push_back(e.loss);
      rows.push_back(gradient<TypeParam>(e, c.targets[i]));
    }
    for (const Index ranks : {2, 3, 7}) {
      if (c.vocab < ranks) continue;
      const auto first = [&](Index r) { return part_begin(c.vocab, ranks, r); };
      const Guarded<Token> targets(c.targets);
      const Guarded<float> partials(ranks * c.rows * partial_softmax_width);
      std::deque<Guarded<float>> parts;
      for (Index r = 0; r < ranks; ++r) {
        const Index held = first(r + 1) - first(r);
        std::vector<float> columns;
        for (Index i = 0; i < c.rows; ++i) {
          const auto row = c.logits.begin() + i * c.vocab;
          columns.insert(columns.end(), row + first(r), row + first(r + 1));
        }
        const Guarded<float>& part = parts.emplace_back(columns);
        partial_softmax(Execution(), part.matrix(c.rows, held), first(r), targets.vector(),
                        {partials.data() + r * c.rows * partial_softmax_width,
                         static_cast<std::size_t>(c.rows), partial_softmax_width});
      }
      const auto all = partials.matrix(ranks * c.rows, partial_softmax_width);
      const Guarded<float> losses(c.rows);
      cross_entropy_of_partials(Execution(), {all, ranks}, losses.vector());
      const std::string name = c.name + " on " + std::to_string(ranks);
      expect_close(losses.host(), loss, name + " loss");
      for (Index r = 0; r < ranks; ++r) {
        const Index held = first(r + 1) - first(r);
        const Guarded<TypeParam> dlogits(c.rows * held);
        const Guarded<float> again(c.rows);
        cross_entropy_of_partials_with_gradient<TypeParam>(
            Execution(), {all, ranks, r}, {parts[r].matrix(c.rows, held), first(r)},
            targets.vector(), scale, again.vector(), dlogits.matrix(c.rows, held));
        EXPECT_EQ(again.host(), losses.host());
        std::vector<Bounded> d;
        for (const std::vector<Bounded>& row : rows)
          d.insert(d.end(), row.begin() + first(r), row.begin() + first(r + 1));
        expect_close(dlogits.host(), d, name + " dlogits");
        if constexpr (std::is_same_v<TypeParam, float>) {  // in place
          cross_entropy_of_partials_with_gradient<float>(
              Execution(), {all, ranks, r}, {parts[r].matrix(c.rows, held), first(r)},
              targets.vector(), scale, again.vector(), parts[r].matrix(c.rows, held));
          EXPECT_TRUE(tests::same_bits(parts[r].host(), dlogits.host())) << name;
        }
      }
    }
  }
}

// namespace

}  // namespace kzero::kernels
