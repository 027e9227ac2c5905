#include "kernels/attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;
using Doubles = std::vector<double>;

/// [T,d] of one head, widened; `stride` elements from row to row.
template <class T>
Doubles rows_of(const T* from, Index rows, Index width, Index stride) {
  Doubles out;
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < width; ++c) out.push_back(as_double(from[i * stride + c]));
  }
  return out;
}

/// q.k and the like, with the magnitudes of the terms.
struct Dot {
  double value = 0, size = 0;

  Dot(const double* a, const double* b, Index n) {
    for (Index c = 0; c < n; ++c) {
      value += a[c] * b[c];
      size += std::abs(a[c] * b[c]);
    }
  }
};

/// One head of one sequence in double.
struct Head {
  Index length, d;
  double scale;
  Doubles q, k, v;

  template <class T>
  Head(const AttentionShape& s, const std::vector<T>& qkv, Index head)
      : length(s.sequence), d(s.head_width()), scale(1 / std::sqrt(static_cast<double>(d))) {
    const T* base = &qkv[head / s.heads * length * 3 * s.width + head % s.heads * d];
    q = rows_of(base, length, d, 3 * s.width);
    k = rows_of(base + s.width, length, d, 3 * s.width);
    v = rows_of(base + 2 * s.width, length, d, 3 * s.width);
  }

  /// d products and sums, and the scale with its own root and division.
  Bounded score(Index i, Index j) const {
    const Dot dot(&q[i * d], &k[j * d], d);
    return {scale * dot.value, gamma(d + 3) * scale * dot.size};
  }
};

struct ForwardReference {
  std::vector<Bounded> out, log_sum;  // [T,d], [T]
};

template <class T>
ForwardReference forward(const Head& h) {
  ForwardReference result;
  for (Index i = 0; i < h.length; ++i) {
    std::vector<Bounded> scores;
    double largest = -INFINITY, total = 0, mean_error = 0;
    for (Index j = 0; j <= i; ++j) {
      scores.push_back(h.score(i, j));
      largest = std::max(largest, scores[j].value);
    }
    for (const Bounded& s : scores) total += std::exp(s.value - largest);
    const double log_total = std::log(total), log_sum = largest + log_total;
    // Relative error of a term before the division: of its score, of the difference, of the
    // exponential.
    const auto term_error = [&](const Bounded& s) {
      return s.error + u * std::abs(s.value - largest) + tests::exponential_error;
    };
    for (const Bounded& s : scores) mean_error += std::exp(s.value - log_sum) * term_error(s);
    const double sum_error = mean_error + gamma(i + 2) + 4 * u * std::abs(log_total);
    result.log_sum.push_back({log_sum, sum_error + 2 * u * std::abs(log_sum)});
    for (Index c = 0; c < h.d; ++c) {
      double value = 0, error = 0;
      for (Index j = 0; j <= i; ++j) {
        // Normalised by a division or in the exponent, which rounds the log-sum and the difference.
        const double p = std::exp(scores[j].value - log_sum), x = h.v[j * h.d + c];
        const double in_exponent = u * (std::abs(log_sum) + std::abs(scores[j].value - log_sum));
        const double relative =
            2 * term_error(scores[j]) + sum_error + 2 * in_exponent + gamma(i + 6);
        value += p * x;
        error += p * std::abs(x) * relative;
      }
      result.out.push_back(stored<T>(value, error));
    }
  }
  return result;
}

struct BackwardReference {
  std::vector<Bounded> dq, dk, dv;  // [T,d] each
};

void add(Bounded& to, double term, double error) {
  to.value += term;
  to.error += error;
}

/// Gradients from the log-sum-exp and the outputs that forward stored. The softmax's inner sum is
/// that of p dp or, equally, of out dout; they differ by the rounding of `out`, which counts as
/// error here.
template <class T>
BackwardReference backward(const Head& h, const Doubles& log_sum, const Doubles& out,
                           const Doubles& dout) {
  const Index n = h.length, d = h.d;
  BackwardReference r{std::vector<Bounded>(n * d), std::vector<Bounded>(n * d),
                      std::vector<Bounded>(n * d)};
  for (Index i = 0; i < n; ++i) {
    std::vector<Bounded> p, dp;
    double inner = 0, inner_error = 0;
    for (Index j = 0; j <= i; ++j) {
      const Bounded s = h.score(i, j);
      const double below = s.value - log_sum[i], value = std::exp(below);
      p.push_back({value, s.error + u * std::abs(below) + tests::exponential_error});  // relative
      const Dot dot(&dout[i * d], &h.v[j * d], d);
      dp.push_back({dot.value, gamma(d) * dot.size});
      inner += value * dot.value;
      inner_error +=
          value * (p[j].error + gamma(i + 2)) * std::abs(dot.value) + value * dp[j].error;
    }
    const Dot other(&out[i * d], &dout[i * d], d);
    inner_error += std::abs(other.value - inner) + gamma(d) * other.size;
    for (Index j = 0; j <= i; ++j) {
      const double difference = dp[j].value - inner, ds = h.scale * p[j].value * difference;
      const double ds_error = h.scale * p[j].value * (dp[j].error + inner_error) +
                              std::abs(ds) * (p[j].error + gamma(6)) + gamma(n + 1) * std::abs(ds);
      const double p_error = p[j].value * (p[j].error + gamma(n + 1));
      for (Index c = 0; c < d; ++c) {
        const double kc = h.k[j * d + c], qc = h.q[i * d + c], gc = dout[i * d + c];
        add(r.dq[i * d + c], ds * kc, ds_error * std::abs(kc));
        add(r.dk[j * d + c], ds * qc, ds_error * std::abs(qc));
        add(r.dv[j * d + c], p[j].value * gc, p_error * std::abs(gc));
      }
    }
  }
  for (auto* part : {&r.dq, &r.dk, &r.dv}) {
    for (Bounded& b : *part) b = stored<T>(b.value, b.error);
  }
  return r;
}

enum class Implementation { chosen, teams };  // chosen: what attention_forward picks on this device

struct Case {
  AttentionShape shape;
  Index slots = 1;
  Implementation implementation = Implementation::chosen;

  std::string name() const {
    return "B " + std::to_string(shape.batch) + " T " + std::to_string(shape.sequence) + " H " +
           std::to_string(shape.heads) + " d " + std::to_string(shape.head_width());
  }
};

AttentionShape make_shape(Index batch, Index sequence, Index heads, Index head_width) {
  return {.batch = batch, .sequence = sequence, .heads = heads, .width = heads * head_width};
}

Index scratch_elements(const Case& c) { return attention_scratch_bytes(c.shape, c.slots) / 4; }

template <class T>
void check_forward(const Case& c) {
  const auto& s = c.shape;
  const Index rows = s.batch * s.sequence, heads = s.batch * s.heads, d = s.head_width();
  const auto qkv = numbers<T>(rows * 3 * s.width, 1, 2);
  const Guarded<T> input(qkv), output(rows * s.width);
  const Guarded<float> logs(heads * s.sequence), scratch(scratch_elements(c));
  if (c.implementation == Implementation::teams) {
    attention_forward_teams<T>(Execution(), s, input.matrix(rows, 3 * s.width),
                               output.matrix(rows, s.width), logs.matrix(heads, s.sequence));
  } else {
    attention_forward<T>(Execution(), s, input.matrix(rows, 3 * s.width),
                         output.matrix(rows, s.width), logs.matrix(heads, s.sequence),
                         scratch.vector());
  }
  std::vector<Bounded> out(rows * s.width), log_sum;
  for (Index head = 0; head < heads; ++head) {
    const auto expected = forward<T>(Head(s, qkv, head));
    log_sum.insert(log_sum.end(), expected.log_sum.begin(), expected.log_sum.end());
    for (Index i = 0; i < s.sequence; ++i) {
      std::copy_n(&expected.out[i * d], d,
                  &out[(head / s.heads * s.sequence + i) * s.width + head % s.heads * d]);
    }
  }
  expect_close(output.host(), out, c.name() + " out");
  expect_close(logs.host(), log_sum, c.name() + " log_sum");
  EXPECT_TRUE(tests::same_bits(input.host(), qkv));
}

/// out and log_sum as an exact forward would store them.
template <class T>
void store_forward(const AttentionShape& s, const std::vector<T>& qkv, std::vector<T>& out,
                   std::vector<float>& log_sum) {
  const Index d = s.head_width();
  for (Index head = 0; head < s.batch * s.heads; ++head) {
    const auto exact = forward<T>(Head(s, qkv, head));
    for (Index i = 0; i < s.sequence; ++i) {
      log_sum[head * s.sequence + i] = static_cast<float>(exact.log_sum[i].value);
      for (Index c = 0; c < d; ++c) {
        out[(head / s.heads * s.sequence + i) * s.width + head % s.heads * d + c] =
            static_cast<T>(static_cast<float>(exact.out[i * d + c].value));
      }
    }
  }
}

template <class T>
void check_backward(const Case& c) {
  const auto& s = c.shape;
  const Index rows = s.batch * s.sequence, heads = s.batch * s.heads, d = s.head_width(),
              n = s.sequence;
  const auto qkv = numbers<T>(rows * 3 * s.width, 1, 2), dout = numbers<T>(rows * s.width, 2);
  std::vector<T> out(rows * s.width);
  std::vector<float> log_sum(heads * n);
  store_forward(s, qkv, out, log_sum);
  const Guarded<T> input(qkv), output(out), gradient(dout), dqkv(rows * 3 * s.width);
  const Guarded<float> logs(log_sum), scratch(scratch_elements(c));
  const auto in = input.matrix(rows, 3 * s.width), result = dqkv.matrix(rows, 3 * s.width);
  const auto o = output.matrix(rows, s.width), g = gradient.matrix(rows, s.width);
  if (c.implementation == Implementation::teams) {
    attention_backward_teams<T>(Execution(), s, in, o, logs.matrix(heads, n), g, result);
  } else {
    attention_backward<T>(Execution(), s, in, o, logs.matrix(heads, n), g, result,
                          scratch.vector());
  }
  std::vector<Bounded> expected(rows * 3 * s.width);
  for (Index head = 0; head < heads; ++head) {
    const Index first = head / s.heads * n * s.width + head % s.heads * d;
    const auto r =
        backward<T>(Head(s, qkv, head), rows_of(&log_sum[head * n], n, 1, 1),
                    rows_of(&out[first], n, d, s.width), rows_of(&dout[first], n, d, s.width));
    for (Index i = 0; i < n; ++i) {
      Bounded* row = &expected[(head / s.heads * n + i) * 3 * s.width + head % s.heads * d];
      std::copy_n(&r.dq[i * d], d, row);
      std::copy_n(&r.dk[i * d], d, row + s.width);
      std::copy_n(&r.dv[i * d], d, row + 2 * s.width);
    }
  }
  expect_close(dqkv.host(), expected, c.name() + " dqkv");
}

template <class T>
class Attention : public testing::Test {};
TYPED_TEST_SUITE(Attention, Elements, );

TYPED_TEST(Attention, MatchesThePlainLoop) {
  for (const Index sequence : {1, 5, 127, 128, 129, 300}) {
    for (const Index head_width : {1, 16, 33, 64}) {
      const Case c{.shape = make_shape(2, sequence, 3, head_width), .slots = 6};
      check_forward<TypeParam>(c);
      check_backward<TypeParam>(c);
    }
  }
}

TYPED_TEST(Attention, NeedsNoMoreScratchThanOneSlot) {
  for (const Index slots : {1, 2, 4}) {  // six heads
    const Case c{.shape = make_shape(2, 129, 3, 16), .slots = slots};
    check_forward<TypeParam>(c);
    check_backward<TypeParam>(c);
  }
}

// Backward is quadratic in the head width here, so the long and the wide shapes are apart.
TYPED_TEST(Attention, TeamsMatchThePlainLoop) {
  const auto check = [](Index sequence, Index head_width) {
    const Case c{.shape = make_shape(2, sequence, 1, head_width),
                 .implementation = Implementation::teams};
    check_forward<TypeParam>(c);
    check_backward<TypeParam>(c);
  };
  for (const Index sequence : {1, 5, 127, 128, 129, 300}) check(sequence, 16);
  for (const Index head_width : {1, 33, 64}) check(33, head_width);
  const Case heads{.shape = make_shape(2, 31, 3, 5), .implementation = Implementation::teams};
  check_forward<TypeParam>(heads);
  check_backward<TypeParam>(heads);
}

}  // namespace

}  // namespace kzero::kernels
