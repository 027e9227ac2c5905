// Compares attention with plain loops in double, with a bound on the error.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/attention/backends.hpp"
#include "unit/kernels/attention_heads.hpp"

namespace kzero::kernels {

struct ForwardReference {
  std::vector<Bounded> out, log_sum;  // [T,d], [T]
};

/// The intermediate rounding of an implementation: the largest relative and absolute errors of a
/// stored probability or its gradient, the maximum number of rescalings of a row's sums, and the
/// relative error of what a query head adds to the gradients of keys and values that heads share.
struct Rounding {
  double relative = 0, absolute = 0;
  Index keys_a_rescaling = 1 << 30;
  double of_shared_parts = 0;
};

template <class T>
ForwardReference forward(const Head& h, const Rounding& rounding) {
  ForwardReference result;
  for (Index i = 0; i < h.length; ++i) {
    std::vector<Bounded> scores;
    const Index from = h.first_key[i];
    double largest = -INFINITY, total = 0, mean_error = 0;
    for (Index j = from; j <= i; ++j) {
      scores.push_back(h.score(i, j));
      largest = std::max(largest, scores.back().value);
    }
    for (const Bounded& s : scores) total += std::exp(s.value - largest);
    const double log_total = std::log(total), log_sum = largest + log_total;
    // Relative error of a term before the division: that of its score, of the difference and of the
    // exponential. The last two occur again whenever the maximum grows, but the differences sum to
    // one.
    const double rescalings = static_cast<double>(i / rounding.keys_a_rescaling);
    const auto term_error = [&](const Bounded& s) {
      return s.error + u * std::abs(s.value - largest) +
             (1 + rescalings) * (exponential_error(s.value - largest) + u);
    };
    for (const Bounded& s : scores) mean_error += std::exp(s.value - log_sum) * term_error(s);
    const double sum_error = mean_error + gamma(i + 2) + 4 * u * std::abs(log_total);
    result.log_sum.push_back({log_sum, sum_error + 2 * u * std::abs(log_sum)});
    for (Index c = 0; c < h.d; ++c) {
      double value = 0, error = 0;
      for (Index j = from; j <= i; ++j) {
        const Bounded& score = scores[j - from];
        // Normalised by a division, or in the exponent, which rounds the log-sum and the
        // difference.
        const double p = std::exp(score.value - log_sum), x = h.v[j * h.d + c];
        const double in_exponent = u * (std::abs(log_sum) + std::abs(score.value - log_sum));
        const double relative = 2 * term_error(score) + sum_error + 2 * in_exponent + gamma(i + 6);
        const double weight = p * h.kept[i * h.length + j];
        value += weight * x;
        error += weight * std::abs(x) * (relative + rounding.relative + h.drop_error) +
                 rounding.absolute * std::abs(x);
      }
      result.out.push_back(stored<T>(value, error));
    }
  }
  return result;
}

struct BackwardReference {
  std::vector<Bounded> dq, dk, dv;  // [T,d] each
};

inline void add(Bounded& to, double term, double error) {
  to.value += term;
  to.error += error;
}

/// Gradients from the log-sum-exp and the outputs stored by forward, not rounded. dk and dv are the
/// part of one of `group` query heads, whose parts are summed. The softmax's inner sum is that of p
/// dp or, equivalently, of out dout. They differ by the rounding of `out`, which counts as error
/// here.
inline BackwardReference backward(const Head& h, Index group, const Rounding& rounding,
                                  const Doubles& log_sum, const Doubles& out, const Doubles& dout) {
  const Index n = h.length, d = h.d;
  const double sum_of_keys = gamma(n + 1), sum_of_queries = gamma(group * n + 1);
  BackwardReference r{std::vector<Bounded>(n * d), std::vector<Bounded>(n * d),
                      std::vector<Bounded>(n * d)};
  for (Index i = 0; i < n; ++i) {
    std::vector<Bounded> p(n), dp(n);
    const Index from = h.first_key[i];
    double inner = 0, inner_error = 0;
    for (Index j = from; j <= i; ++j) {
      const Bounded s = h.score(i, j);
      const double below = s.value - log_sum[i], value = std::exp(below);
      p[j] = {value, s.error + u * std::abs(below) + exponential_error(below)};  // relative
      const Dot dot(&dout[i * d], &h.v[j * d], d);
      const double kept = h.kept[i * n + j];
      dp[j] = {kept * dot.value, kept * (gamma(d) + h.drop_error) * dot.size};
      inner += value * dp[j].value;
      inner_error +=
          value * (p[j].error + gamma(i + 2)) * std::abs(dp[j].value) + value * dp[j].error;
    }
    const Dot other(&out[i * d], &dout[i * d], d);
    inner_error += std::abs(other.value - inner) + gamma(d) * other.size;
    for (Index j = from; j <= i; ++j) {
      const double difference = dp[j].value - inner, ds = h.scale * p[j].value * difference;
      double ds_error = h.scale * p[j].value * (dp[j].error + inner_error) +
                        std::abs(ds) * (p[j].error + gamma(6)) + rounding.relative * std::abs(ds) +
                        h.scale * rounding.absolute;
      // `out` is rounded after dropout, so dS may be an error alone, which is rounded, too.
      if (h.drop_error > 0) ds_error += rounding.relative * ds_error;
      const double weight = p[j].value * h.kept[i * n + j];
      const double p_error =
          weight * (p[j].error + sum_of_queries + rounding.relative + h.drop_error) +
          rounding.absolute;
      for (Index c = 0; c < d; ++c) {
        const double kc = h.k[j * d + c], qc = h.q[i * d + c], gc = dout[i * d + c];
        const double sum_dq = std::abs(ds) * sum_of_keys, sum_dk = std::abs(ds) * sum_of_queries;
        add(r.dq[i * d + c], ds * kc, (ds_error + sum_dq) * std::abs(kc));
        add(r.dk[j * d + c], ds * qc, (ds_error + sum_dk) * std::abs(qc));
        add(r.dv[j * d + c], weight * gc, p_error * std::abs(gc));
      }
    }
  }
  if (group == 1) return r;
  for (auto* parts : {&r.dk, &r.dv}) {
    for (Bounded& part : *parts)
      part.error += rounding.of_shared_parts * (std::abs(part.value) + part.error);
  }
  return r;
}

/// The error added by storing a probability or its gradient as T.
template <class T>
Rounding stored_probabilities() {
  const Bounded one = stored<T>(1, 0), none = stored<T>(0, 0);
  return {one.error - none.error, none.error};
}

/// The problem with q, k and v in one matrix.
template <class T>
AttentionProblem problem_of(const AttentionShape& s, float scale = 0) {
  const Index stride = s.qkv_width();
  return {.shape = s,
          .type = dtype_of<T>,
          .q_stride = stride,
          .k_stride = stride,
          .v_stride = stride,
          .scale = scale};
}

/// The device's implementation.
template <class Arithmetic>
struct Tiled {
  template <class T>
  static Rounding rounding() {
    Rounding rounding = stored_probabilities<T>();
    rounding.keys_a_rescaling = 16;
    return rounding;
  }
  template <class T>
  static std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
    return std::make_unique<device::Attention<Arithmetic, T>>(problem);
  }
};

/// kzero's kernels in this build. On hosts, bf16 products have 16-bit operands. Products of other
/// types are in fp32.
struct Own {
  template <class T>
  static Rounding rounding() {
    if (!tensor::on_host) return Tiled<DeviceArithmetic>::rounding<T>();
    return std::is_same_v<T, bf16> ? stored_probabilities<bf16>() : Rounding{};
  }
  template <class T>
  static std::unique_ptr<AttentionBackend<T>> make(const AttentionProblem& problem) {
    return attention_backends<T>().back().make(problem);
  }
};

inline std::string name_of(const AttentionShape& s) {
  return "B " + std::to_string(s.batch) + " T " + std::to_string(s.sequence) + " H " +
         std::to_string(s.heads) + " K " + std::to_string(s.kv_heads) + " d " +
         std::to_string(s.head_width);
}

inline AttentionShape make_shape(Index batch, Index sequence, Index heads, Index head_width,
                                 Index group = 1) {
  return {.batch = batch,
          .sequence = sequence,
          .heads = heads * group,
          .kv_heads = heads,
          .head_width = head_width};
}

template <class Implementation, class T>
void check_forward(const AttentionShape& s, Index slots = 1, const SeenRows& seen = {}) {
  const Index rows = s.batch * s.sequence, heads = s.batch * s.heads, d = s.head_width;
  const auto qkv = numbers<T>(rows * s.qkv_width(), 1, 2);
  const Guarded<T> input(qkv), output(rows * s.width());
  const auto backend = Implementation::template make<T>(problem_of<T>(s, seen.scale));
  const Guarded<float> logs(heads * s.sequence), scratch(backend->scratch_bytes(slots) / 4);
  backend->start(scratch.vector());
  const DeviceDocuments documents(seen.documents);
  backend->forward({}, operands_in<const T>(input.matrix(rows, s.qkv_width()), s),
                   seen.view(documents), output.matrix(rows, s.width()),
                   logs.matrix(heads, s.sequence));
  std::vector<Bounded> out(rows * s.width()), log_sum;
  for (Index head = 0; head < heads; ++head) {
    const auto expected =
        forward<T>(Head(s, qkv, head, seen), Implementation::template rounding<T>());
    log_sum.insert(log_sum.end(), expected.log_sum.begin(), expected.log_sum.end());
    for (Index i = 0; i < s.sequence; ++i) {
      std::copy_n(&expected.out[i * d], d,
                  &out[(head / s.heads * s.sequence + i) * s.width() + head % s.heads * d]);
    }
  }
  expect_close(output.host(), out, name_of(s) + " out");
  expect_close(logs.host(), log_sum, name_of(s) + " log_sum");
  EXPECT_TRUE(tests::same_bits(input.host(), qkv));
}

/// Stores out and log_sum as an exact forward would.
template <class T>
void store_forward(const AttentionShape& s, const std::vector<T>& qkv, const SeenRows& seen,
                   std::vector<T>& out, std::vector<float>& log_sum) {
  const Index d = s.head_width;
  for (Index head = 0; head < s.batch * s.heads; ++head) {
    const auto exact = forward<T>(Head(s, qkv, head, seen), Rounding{});
    for (Index i = 0; i < s.sequence; ++i) {
      log_sum[head * s.sequence + i] = static_cast<float>(exact.log_sum[i].value);
      for (Index c = 0; c < d; ++c) {
        out[(head / s.heads * s.sequence + i) * s.width() + head % s.heads * d + c] =
            static_cast<T>(static_cast<float>(exact.out[i * d + c].value));
      }
    }
  }
}

template <class Implementation, class T>
void check_backward(const AttentionShape& s, Index slots = 1, const SeenRows& seen = {}) {
  const Index rows = s.batch * s.sequence, heads = s.batch * s.heads, d = s.head_width,
              n = s.sequence;
  const auto qkv = numbers<T>(rows * s.qkv_width(), 1, 2), dout = numbers<T>(rows * s.width(), 2);
  std::vector<T> out(rows * s.width());
  std::vector<float> log_sum(heads * n);
  store_forward(s, qkv, seen, out, log_sum);
  const DeviceDocuments documents(seen.documents);
  const Guarded<T> input(qkv), output(out), gradient(dout), dqkv(rows * s.qkv_width());
  const auto backend = Implementation::template make<T>(problem_of<T>(s, seen.scale));
  const Guarded<float> logs(log_sum), scratch(backend->scratch_bytes(slots) / 4);
  const auto in = input.matrix(rows, s.qkv_width()), result = dqkv.matrix(rows, s.qkv_width());
  const auto o = output.matrix(rows, s.width()), g = gradient.matrix(rows, s.width());
  backend->start(scratch.vector());
  backend->backward({}, operands_in<const T>(in, s), seen.view(documents), o, logs.matrix(heads, n),
                    g, operands_in(result, s));
  std::vector<Bounded> expected(rows * s.qkv_width());
  const Index group = s.heads / s.kv_heads;
  for (Index head = 0; head < heads; ++head) {
    const Index of_sequence = head % s.heads, first_row = head / s.heads * n;
    const Index first = first_row * s.width() + of_sequence * d;
    const auto r =
        backward(Head(s, qkv, head, seen), group, Implementation::template rounding<T>(),
                 rows_of(&log_sum[head * n], n, 1, 1), rows_of(&out[first], n, d, s.width()),
                 rows_of(&dout[first], n, d, s.width()));
    for (Index i = 0; i < n; ++i) {
      Bounded* row = &expected[(first_row + i) * s.qkv_width()];
      Bounded* key = row + s.width() + of_sequence / group * d;
      for (Index c = 0; c < d; ++c) {
        row[of_sequence * d + c] = r.dq[i * d + c];
        add(key[c], r.dk[i * d + c].value, r.dk[i * d + c].error);
        add(key[s.kv_heads * d + c], r.dv[i * d + c].value, r.dv[i * d + c].error);
      }
    }
  }
  for (Bounded& b : expected) b = stored<T>(b.value, b.error);
  expect_close(dqkv.host(), expected, name_of(s) + " dqkv");
}

/// Shapes around the blocks of the tiles: less than one block, one, and one row more. Head widths
/// below and above a tile. Rows that are and are not aligned to 16 bytes.
inline std::vector<AttentionShape> tiled_shapes() {
  std::vector<AttentionShape> shapes;
  for (const Index sequence : {1, 2, 17, 63, 64, 65, 130})
    shapes.push_back(make_shape(2, sequence, 2, 20));
  for (const Index head_width : {1, 8, 64, 80, 128, 136, 257})
    shapes.push_back(make_shape(1, 65, 2, head_width));
  shapes.push_back(make_shape(1, 200, 1, 64));
  shapes.push_back(make_shape(2, 65, 2, 20, 3));
  shapes.push_back(make_shape(1, 63, 1, 136, 4));
  return shapes;
}

/// Checks several documents a sequence: of one token, of the length of the sequence, and padding;
/// and windows.
template <class Implementation, class T>
void check_documents(const AttentionShape& s, Index slots = 1) {
  std::vector<DocumentRows> cases = document_cases(s.batch, s.sequence);
  std::ranges::copy(window_cases(s.batch, s.sequence), std::back_inserter(cases));
  for (const DocumentRows& documents : cases) {
    check_forward<Implementation, T>(s, slots, {documents});
    check_backward<Implementation, T>(s, slots, {documents});
  }
}

/// Checks dropout of weights, with one and with several documents a sequence.
template <class Implementation, class T>
void check_dropout(const AttentionShape& s, Index slots = 1) {
  for (const double p : {0.1, 0.6}) {
    for (const DocumentRows& documents :
         {DocumentRows(), document_cases(s.batch, s.sequence).back()}) {
      check_forward<Implementation, T>(s, slots, {documents, p});
      check_backward<Implementation, T>(s, slots, {documents, p});
    }
  }
}

/// Checks other factors on scores than 1 / sqrt(d): without a mask, in documents and in windows.
template <class Implementation, class T>
void check_scales(const AttentionShape& s, Index slots = 1) {
  const SeenRows cases[] = {{.scale = 0.75F},
                            {.documents = document_cases(s.batch, s.sequence).back(), .scale = 2},
                            {.documents = window_cases(s.batch, s.sequence)[3], .scale = 0.011F}};
  for (const SeenRows& seen : cases) {
    check_forward<Implementation, T>(s, slots, seen);
    check_backward<Implementation, T>(s, slots, seen);
  }
}

/// Checks that tiles of other documents are not read: after 384 tokens, a multiple of every block,
/// nothing of them affects the next document. A hidden NaN in a tile that is read would.
template <class Implementation, class T>
void check_skipping(Index head_width) {
  const AttentionShape s = make_shape(1, 3 * 384, 1, head_width);
  const Index rows = s.sequence, d = head_width, width = s.qkv_width();
  const DocumentRows all(1, rows, {384, 384, 384});
  const DeviceDocuments documents(all);
  const auto backend = Implementation::template make<T>(problem_of<T>(s));
  const Guarded<float> scratch(backend->scratch_bytes(1) / 4);
  backend->start(scratch.vector());
  const auto run = [&](std::vector<T> qkv, std::vector<T> dout) {
    const Guarded<T> in(qkv), g(dout), out(rows * d), gradient(rows * width);
    const Guarded<float> logs(rows);
    const auto operands = operands_in<const T>(in.matrix(rows, width), s);
    backend->forward({}, operands, documents.view(), out.matrix(rows, d), logs.matrix(1, rows));
    backend->backward({}, operands, documents.view(), out.matrix(rows, d), logs.matrix(1, rows),
                      g.matrix(rows, d), operands_in(gradient.matrix(rows, width), s));
    std::vector<T> found = out.host(), gradients = gradient.host();
    found.erase(found.begin() + 2 * 384 * d, found.end());
    found.erase(found.begin(), found.begin() + 384 * d);
    found.insert(found.end(), gradients.begin() + 384 * width, gradients.begin() + 768 * width);
    return found;
  };
  auto qkv = numbers<T>(rows * width, 1, 2), dout = numbers<T>(rows * d, 2);
  const auto expected = run(qkv, dout);
  const T bad = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
  for (const Index begin : {0, 768}) {
    std::fill_n(qkv.begin() + begin * width, 384 * width, bad);
    std::fill_n(dout.begin() + begin * d, 384 * d, bad);
  }
  EXPECT_TRUE(tests::same_bits(run(qkv, dout), expected)) << "width " << head_width;
}

/// Does the same for a window of 64 tokens in rows of 384: nothing of the first third affects the
/// last, nor does a query of the last affect the keys of the first.
template <class Implementation, class T>
void check_window_skipping(Index head_width) {
  const AttentionShape s = make_shape(1, 3 * 384, 1, head_width);
  const Index rows = s.sequence, d = head_width, width = s.qkv_width();
  const DeviceDocuments window(DocumentRows(1, rows, {rows}).in_window(64, rows));
  const auto backend = Implementation::template make<T>(problem_of<T>(s));
  const Guarded<float> scratch(backend->scratch_bytes(1) / 4);
  backend->start(scratch.vector());
  // Rows [from, from + 384) of the results, with rows [bad, bad + 384) of the operands spoilt.
  const auto run = [&](Index from, Index bad) {
    auto qkv = numbers<T>(rows * width, 1, 2), dout = numbers<T>(rows * d, 2);
    if (bad >= 0) {
      const T nan = static_cast<T>(std::numeric_limits<float>::quiet_NaN());
      std::fill_n(qkv.begin() + bad * width, 384 * width, nan);
      std::fill_n(dout.begin() + bad * d, 384 * d, nan);
    }
    const Guarded<T> in(qkv), g(dout), out(rows * d), gradient(rows * width);
    const Guarded<float> logs(rows);
    const auto operands = operands_in<const T>(in.matrix(rows, width), s);
    backend->forward({}, operands, window.view(), out.matrix(rows, d), logs.matrix(1, rows));
    backend->backward({}, operands, window.view(), out.matrix(rows, d), logs.matrix(1, rows),
                      g.matrix(rows, d), operands_in(gradient.matrix(rows, width), s));
    const std::vector<T> all = out.host(), gradients = gradient.host();
    std::vector<T> found(all.begin() + from * d, all.begin() + (from + 384) * d);
    found.insert(found.end(), gradients.begin() + from * width,
                 gradients.begin() + (from + 384) * width);
    return found;
  };
  EXPECT_TRUE(tests::same_bits(run(768, 0), run(768, -1))) << "width " << head_width;
  EXPECT_TRUE(tests::same_bits(run(0, 768), run(0, -1))) << "width " << head_width;
}

template <class Implementation, class T>
void check_attention(const AttentionShape& s, Index slots = 1) {
  check_forward<Implementation, T>(s, slots);
  check_backward<Implementation, T>(s, slots);
}

}  // namespace kzero::kernels
