#include "kernels/softmax_cross_entropy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <deque>
#include <limits>

#include "kernels/softmax_row.hpp"
#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

constexpr float scale = 0.037F;  // not a power of two

/// The device kernels on any build, in addition to CrossEntropyRows, which this build uses.
using OfTeams = CrossEntropyBy<RowByTeam>;

/// The rescalings of a term of a device's sum: at most one per pack of its lane, and those for
/// joining the lanes.
Index device_rescalings(Index vocab) {
  const Index pack = detail::softmax_pack * softmax_lanes;
  return ceil_div(vocab, pack) + 1 + std::bit_width(static_cast<std::size_t>(softmax_lanes)) - 1;
}

template <class Kernels>
Index rescalings(Index vocab) {
  return std::is_same_v<Kernels, OfTeams> ? device_rescalings(vocab) : 0;
}

/// A matrix with gaps between its rows. The gaps contain NaN and must not change.
template <class T>
class Rows {
 public:
  Rows(Index rows, Index columns, Index gap)
      : rows_(rows), columns_(columns), stride_(columns + gap), memory_(rows * stride_) {
    before_ = memory_.host();
  }
  Rows(const std::vector<T>& values, Index rows, Index gap)
      : Rows(rows, static_cast<Index>(values.size()) / rows, gap) {
    for (Index i = 0; i < rows_; ++i)
      std::copy_n(values.begin() + i * columns_, columns_, before_.begin() + i * stride_);
    memory_.set(before_);
  }

  tensor::StridedMatrix<T> view() const {
    return tensor::strided_matrix(memory_.data(), rows_, columns_, stride_);
  }
  std::vector<T> host() const {
    const auto all = memory_.host();
    std::vector<T> values, gaps, gaps_before;
    for (Index i = 0; i < rows_; ++i) {
      const auto row = all.begin() + i * stride_, row_before = before_.begin() + i * stride_;
      values.insert(values.end(), row, row + columns_);
      gaps.insert(gaps.end(), row + columns_, row + stride_);
      gaps_before.insert(gaps_before.end(), row_before + columns_, row_before + stride_);
    }
    EXPECT_TRUE(tests::same_bits(gaps, gaps_before)) << "written between the rows";
    return values;
  }

 private:
  Index rows_, columns_, stride_;
  Guarded<T> memory_;
  std::vector<T> before_;
};

struct Expected {
  Bounded loss, log_z;
  std::vector<Bounded> softmax;  // unscaled
};

/// Each rescaling multiplies a term by a rounded exponential. The exponents sum to that of a single
/// rescaling.
Expected reference(const float* row, Index vocab, Token target, Index rescalings) {
  double largest = -INFINITY;
  if (target < 0) return {{0, 0}, {0, 0}, std::vector<Bounded>(vocab)};
  for (Index j = 0; j < vocab; ++j) largest = std::max(largest, as_double(row[j]));
  double total = 0, total_error = 0;
  std::vector<Bounded> terms;
  for (Index j = 0; j < vocab; ++j) {
    const double below = as_double(row[j]) - largest, e = std::exp(below);
    // The rounding of the difference affects the exponent. Below -87 the kernel's exponential is
    // zero.
    const double error =
        e * (u * std::abs(below) + exponential_error(below)) + (below < -86 ? e : 0);
    terms.push_back({e, error});
    total += e;
    total_error += error + e * static_cast<double>(rescalings) * (exponential_error(below) + u);
  }
  total_error += gamma(vocab) * (total + total_error);
  const double relative = total_error / total, log_total = std::log(total);
  const double loss = largest + log_total - as_double(row[target]);
  // log: the relative error of its argument, and two units in the last place of its own.
  const double log_z = largest + log_total;
  const double log_z_error = relative + 4 * u * std::abs(log_total) + u * std::abs(log_z);
  Expected out{{loss, log_z_error + u * std::abs(loss) + u * relative}, {log_z, log_z_error}, {}};
  for (const auto& [e, error] : terms) {
    out.softmax.push_back({e / total, error / total + e / total * (relative + gamma(4))});
  }
  return out;
}

template <class T>
std::vector<Bounded> gradient(const Expected& expected, Token target, float z_loss) {
  std::vector<Bounded> out;
  if (target < 0) return std::vector<Bounded>(expected.softmax.size());  // exactly 0
  // The z-loss multiplies the softmax by 1 + 2 k log(Z), which takes three roundings.
  const double z = 2 * as_double(z_loss), weight = 1 + z * expected.log_z.value;
  const double weight_error =
      z == 0 ? 0 : z * expected.log_z.error + gamma(3) * (1 + std::abs(z * expected.log_z.value));
  for (std::size_t j = 0; j < expected.softmax.size(); ++j) {
    const auto [p, error] = expected.softmax[j];
    const double s = as_double(scale), hot = j == static_cast<std::size_t>(target) ? 1 : 0;
    const double value = s * (weight * p - hot);
    const double of_softmax = std::abs(weight) * error + weight_error * (p + error);
    out.push_back(stored<T>(value, s * of_softmax + u * std::abs(value)));
  }
  return out;
}

struct Case {
  Index rows, vocab;
  std::vector<float> logits;
  std::vector<Token> targets;
  std::string name;
  Index gap = 0;  // elements between rows
  float z_loss = 0;

  LossTerms terms() const { return {scale, z_loss}; }
  template <class Kernels>
  Expected reference(Index i) const {
    return kernels::reference(&logits[i * vocab], vocab, targets[i], rescalings<Kernels>(vocab));
  }
};

std::vector<Index> vocabularies() {
  std::vector<Index> all{1, 101, 1000, 5003};
#ifndef __SANITIZE_THREAD__  // also checks the plain loops, which takes minutes
  all.push_back(151936);
#endif
  return all;
}

/// Over how many ranks the columns are cut.
std::vector<Index> rank_counts() {
#ifdef __SANITIZE_THREAD__  // no barrier depends on them
  return {3};
#else
  return {2, 3, 7};
#endif
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const Index rows : {1, 7, 33}) {
    for (const Index vocab : vocabularies()) {
      if (vocab > 1000 && rows != 7) continue;  // slow, so tested once
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
      for (Index i = 0; i < rows; i += 3) c.targets[i] = -1;
      c.name += ", rows without targets";
      all.push_back(c);
    }
  }
  return all;
}

/// Calls f(kernels, case) for all cases: contiguous rows, and for devices also gaps that keep rows
/// aligned or misalign them.
template <class F>
void for_each_way(const F& f) {
  for (Case c : cases()) {
    f(CrossEntropyRows{}, c);
    f(OfTeams{}, c);
    if (c.vocab > 5003) continue;
    for (const Index gap : {3, 59}) {
      c.gap = gap;
      f(CrossEntropyRows{}, c);
      f(OfTeams{}, c);
    }
    for (const float z_loss : {1e-4F, 0.02F}) {
      c.z_loss = z_loss;
      f(CrossEntropyRows{}, c);
      f(OfTeams{}, c);
    }
  }
}

/// The losses and gradients of one case. If `dlogits` is null, T is float and the gradient replaces
/// the logits.
template <class Kernels, class T>
void check(const Case& c, const Rows<float>& logits, const Rows<T>& dlogits) {
  const Guarded<Token> targets(c.targets);
  const Guarded<float> losses(c.rows);
  Kernels::template with_gradient<T>(Execution(), logits.view(), targets.vector(), c.terms(),
                                     losses.vector(), dlogits.view());
  std::vector<Bounded> loss, d;
  for (Index i = 0; i < c.rows; ++i) {
    const Expected e = c.reference<Kernels>(i);
    loss.push_back(e.loss);
    for (const Bounded b : gradient<T>(e, c.targets[i], c.z_loss)) d.push_back(b);
  }
  expect_close(losses.host(), loss, c.name + " loss");
  expect_close(dlogits.host(), d, c.name + " dlogits");
}

template <class T>
class CrossEntropy : public testing::Test {};
TYPED_TEST_SUITE(CrossEntropy, Elements, );

TYPED_TEST(CrossEntropy, LossAndGradientMatchThePlainLoop) {
  for_each_way([]<class Kernels>(Kernels, const Case& c) {
    const Rows<float> logits(c.logits, c.rows, c.gap);
    const Rows<TypeParam> dlogits(c.rows, c.vocab, c.gap);
    check<Kernels, TypeParam>(c, logits, dlogits);
  });
}

TEST(CrossEntropyInPlace, GradientMayReplaceTheLogits) {
  for_each_way([]<class Kernels>(Kernels, const Case& c) {
    const Rows<float> logits(c.logits, c.rows, c.gap);
    check<Kernels, float>(c, logits, logits);
  });
}

/// The gradient of a case's rows with these weights, of all columns or of those of a rank.
template <class Kernels>
std::vector<float> weighted_gradient(const Case& c, const float* weights, bool is_split) {
  const Rows<float> logits(c.logits, c.rows, c.gap);
  const Rows<float> dlogits(c.rows, c.vocab, c.gap);
  const Guarded<Token> targets(c.targets);
  const Guarded<float> losses(c.rows);
  LossTerms terms = c.terms();
  terms.weights = weights;
  if (!is_split) {
    Kernels::template with_gradient<float>(Execution(), logits.view(), targets.vector(), terms,
                                           losses.vector(), dlogits.view());
    return dlogits.host();
  }
  const Guarded<float> partials(c.rows * partial_softmax_width);
  const auto all = partials.matrix(c.rows, partial_softmax_width);
  Kernels::partial_softmax(Execution(), logits.view(), 0, Vector<const Token>(targets.vector()),
                           all);
  Kernels::template of_partials_with_gradient<float>(
      Execution(), PartialSoftmaxes{all, 1, 0}, SplitLogits{logits.view(), 0}, targets.vector(),
      terms, losses.vector(), dlogits.view());
  return dlogits.host();
}

// Powers of two scale exactly, except for numbers below the normal ones.
TEST(CrossEntropyInPlace, AWeightScalesTheGradientOfItsRow) {
  for_each_way([]<class Kernels>(Kernels, const Case& c) {
    std::vector<float> values;
    for (Index i = 0; i < c.rows; ++i)
      values.push_back(std::ldexp(i % 2 == 0 ? -1.0F : 1.0F, static_cast<int>(i % 5)));
    values.back() = 0;
    const Guarded<float> weights(values);
    for (const bool is_split : {false, true}) {
      const auto plain = weighted_gradient<Kernels>(c, nullptr, is_split);
      const auto weighted = weighted_gradient<Kernels>(c, weights.data(), is_split);
      Index different = 0;
      for (Index i = 0; i < c.rows * c.vocab; ++i)
        different += std::abs(weighted[i] - values[i / c.vocab] * plain[i]) > 1e-36F ? 1 : 0;
      EXPECT_EQ(different, 0) << c.name << (is_split ? " split" : "");
    }
  });
}

TEST(CrossEntropyForward, MatchesThePlainLoopAndLeavesTheLogits) {
  for_each_way([]<class Kernels>(Kernels, const Case& c) {
    const Rows<float> logits(c.logits, c.rows, c.gap);
    const Guarded<float> losses(c.rows);
    const Guarded<Token> targets(c.targets);
    Kernels::forward(Execution(), logits.view(), targets.vector(), losses.vector());
    std::vector<Bounded> loss;
    for (Index i = 0; i < c.rows; ++i) loss.push_back(c.reference<Kernels>(i).loss);
    expect_close(losses.host(), loss, c.name);
    EXPECT_TRUE(tests::same_bits(logits.host(), c.logits));
  });
}

template <class Kernels>
float loss_of(const std::vector<float>& values) {
  const Rows<float> logits(values, 1, 3);
  const Guarded<float> losses(1);
  const Guarded<Token> targets(std::vector<Token>{3});
  Kernels::forward(Execution(), logits.view(), targets.vector(), losses.vector());
  return losses.host()[0];
}

TEST(CrossEntropyForward, ANonFiniteLogitMakesTheLossNotFinite) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), INFINITY}) {
    for (const Index at : {0, 50, 100}) {
      auto values = numbers<float>(101, 1);
      values[at] = bad;
      EXPECT_FALSE(std::isfinite(loss_of<CrossEntropyRows>(values))) << bad << " at " << at;
      EXPECT_FALSE(std::isfinite(loss_of<OfTeams>(values))) << bad << " at " << at;
    }
  }
}

// A lane or pack that contains only minus infinity must not turn it into NaN.
TEST(CrossEntropyForward, ALogitOfMinusInfinityCountsAsNothing) {
  std::vector<float> values(40, -INFINITY);
  for (const Index at : {3, 20, 39}) values[at] = 1.5F;
  EXPECT_NEAR(loss_of<CrossEntropyRows>(values), std::log(3.0F), 1e-6);
  EXPECT_NEAR(loss_of<OfTeams>(values), std::log(3.0F), 1e-6);
}

/// The maximum and the sum of a row, computed by one team of this shape.
std::vector<float> softmax_of_row(const Policy& shape, const Vector<float>& row) {
  Policy policy = shape;
  policy.set_scratch_size(0, Kokkos::PerTeam(static_cast<int>(SoftmaxLanes::shmem_size())));
  const Guarded<float> sums(2);
  const Vector<float> out = sums.vector();
  const Index count = row.extent(0);
  Kokkos::parallel_for(
      "kzero::tests::softmax_of_row", policy, KOKKOS_LAMBDA(const Team& team) {
        const SoftmaxSum sum = row_softmax(team, count, row.data());
        Kokkos::single(Kokkos::PerTeam(team), [=]() {
          out(0) = sum.largest;
          out(1) = sum.total;
        });
      });
  return sums.host();
}

// A row's lanes are joined in one order for any team.
TEST(SoftmaxRow, HasTheSameBitsWhateverTheTeam) {
  const Guarded<float> row(numbers<float>(5003, 1, 9));
  std::vector<std::vector<float>> found;
  const auto add = [&](const Policy& shape) {
    found.push_back(softmax_of_row(shape, row.vector()));
  };
  if (runtime::kernels_on_host) {
    for (const Execution& exec : tests::thread_counts()) add(Policy(exec, 1, exec.concurrency()));
  } else {
    for (const int threads : {32, 128, 512, softmax_lanes}) add(Policy(Execution(), 1, threads, 1));
  }
  ASSERT_GT(found.size(), 1U);
  for (const auto& sums : found) EXPECT_TRUE(tests::same_bits(sums, found.front()));
}

}  // namespace

// Each rank has a part of the columns. Together, the parts' softmaxes give the losses of the full
// rows. Each rank's gradient columns equal those of the full gradient.
TYPED_TEST(CrossEntropy, OfColumnsCutOverRanksMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_way([]<class Kernels>(Kernels, const Case& c) {
    std::vector<Bounded> loss;
    std::vector<std::vector<Bounded>> rows;
    for (Index i = 0; i < c.rows; ++i) {
      const Expected e = c.reference<Kernels>(i);
      loss.push_back(e.loss);
      rows.push_back(gradient<T>(e, c.targets[i], c.z_loss));
    }
    for (const Index ranks : rank_counts()) {
      if (c.vocab < ranks) continue;
      const auto first = [&](Index r) { return part_begin(c.vocab, ranks, r); };
      const Guarded<Token> targets(c.targets);
      const Guarded<float> partials(ranks * c.rows * partial_softmax_width);
      std::deque<Rows<float>> parts;
      for (Index r = 0; r < ranks; ++r) {
        std::vector<float> columns;
        for (Index i = 0; i < c.rows; ++i) {
          const auto row = c.logits.begin() + i * c.vocab;
          columns.insert(columns.end(), row + first(r), row + first(r + 1));
        }
        const Rows<float>& part = parts.emplace_back(columns, c.rows, c.gap);
        const Matrix<float> partial(partials.data() + r * c.rows * partial_softmax_width, c.rows,
                                    partial_softmax_width);
        Kernels::partial_softmax(Execution(), part.view(), first(r),
                                 Vector<const Token>(targets.vector()), partial);
      }
      const auto all = partials.matrix(ranks * c.rows, partial_softmax_width);
      const Guarded<float> losses(c.rows);
      cross_entropy_of_partials(Execution(), {all, ranks}, targets.vector(), losses.vector());
      const std::string name = c.name + " on " + std::to_string(ranks);
      expect_close(losses.host(), loss, name + " loss");
      for (Index r = 0; r < ranks; ++r) {
        const Rows<T> dlogits(c.rows, first(r + 1) - first(r), c.gap);
        const Guarded<float> again(c.rows);
        Kernels::template of_partials_with_gradient<T>(
            Execution(), PartialSoftmaxes{all, ranks, r}, SplitLogits{parts[r].view(), first(r)},
            targets.vector(), c.terms(), again.vector(), dlogits.view());
        EXPECT_EQ(again.host(), losses.host());
        std::vector<Bounded> d;
        for (const std::vector<Bounded>& row : rows)
          d.insert(d.end(), row.begin() + first(r), row.begin() + first(r + 1));
        expect_close(dlogits.host(), d, name + " dlogits");
        if constexpr (std::is_same_v<T, float>) {  // in place
          Kernels::template of_partials_with_gradient<float>(
              Execution(), PartialSoftmaxes{all, ranks, r}, SplitLogits{parts[r].view(), first(r)},
              targets.vector(), c.terms(), again.vector(), parts[r].view());
          EXPECT_TRUE(tests::same_bits(parts[r].host(), dlogits.host())) << name;
        }
      }
    }
  });
}

}  // namespace kzero::kernels
