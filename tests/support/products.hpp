// Checks GEMMs of every kind against a plain loop. Every Gemm back end must pass.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "tensor/gemm.hpp"

namespace kzero::tests {

using tensor::Accumulate;
using tensor::Execution;
using tensor::Gemm;
using tensor::GemmProblem;
using tensor::Transpose;

constexpr float gap_value = -12345.0F;  // fills the gaps between rows of C

struct Size {
  Index m, n, k;
};

enum class Extra {
  none,
  bias,
  addend,
  accumulate,
  bias_and_addend,
  bias_and_accumulate,
  gelu_gradient
};
constexpr Extra extras[] = {Extra::none,
                            Extra::bias,
                            Extra::addend,
                            Extra::accumulate,
                            Extra::bias_and_addend,
                            Extra::bias_and_accumulate,
                            Extra::gelu_gradient};

inline bool has_bias(Extra e) {
  return e == Extra::bias || e == Extra::bias_and_addend || e == Extra::bias_and_accumulate;
}
inline bool has_addend(Extra e) { return e == Extra::addend || e == Extra::bias_and_addend; }
inline bool accumulates(Extra e) {
  return e == Extra::accumulate || e == Extra::bias_and_accumulate;
}

inline bool has_gelu_gradient(Extra e) { return e == Extra::gelu_gradient; }

/// The gradient of GELU's tanh form. Libraries may use the hardware's tanh, whose relative error is
/// at most 2^-11 (PTX, tanh.approx).
inline Bounded gelu_gradient(double x) {
  const double root_two_over_pi = std::sqrt(2 / std::numbers::pi), cubic = 0.044715;
  const double t = std::tanh(root_two_over_pi * (x + cubic * x * x * x));
  const double inner = root_two_over_pi * (1 + 3 * cubic * x * x);
  const double error = 0x1p-11 * std::abs(t) * (0.5 + std::abs(x) * inner);
  return {0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner, error + gamma(16)};
}

/// op(A), op(B) and their product in double. `size` is the sum of magnitudes, for the error bound.
template <class T>
struct Problem {
  Size s;
  std::vector<T> a, b;
  std::vector<double> value, size;

  explicit Problem(const Size& sizes)
      : s(sizes),
        a(numbers<T>(s.m * s.k, 1)),
        b(numbers<T>(s.k * s.n, 2)),
        value(s.m * s.n),
        size(s.m * s.n) {
    std::vector<double> wide(b.size());
    for (std::size_t i = 0; i < b.size(); ++i) wide[i] = as_double(b[i]);
    for (Index i = 0; i < s.m; ++i) {
      for (Index l = 0; l < s.k; ++l) {
        const double ail = as_double(a[i * s.k + l]);
        for (Index j = 0; j < s.n; ++j) {
          const double product = ail * wide[l * s.n + j];
          value[i * s.n + j] += product;
          size[i * s.n + j] += std::abs(product);
        }
      }
    }
  }
};

/// A matrix as stored in memory, with NaN in the gaps to detect products that read them.
template <class T>
std::vector<T> assign_offsets(const std::vector<T>& x, Index rows, Index columns,
                              Transpose transpose, Index gap) {
  const Index lines = transpose == Transpose::no ? rows : columns;
  const Index stride = rows * columns / lines + gap;
  std::vector<T> out(lines * stride, T(std::numeric_limits<float>::quiet_NaN()));
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      out[transpose == Transpose::no ? i * stride + j : j * stride + i] = x[i * columns + j];
    }
  }
  return out;
}

struct Variant {
  Transpose a, b;
  Extra extra;
  Index gap;
};

inline std::string name_of(const Size& s, const Variant& v) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         " transposed " + std::to_string(static_cast<int>(v.a)) +
         std::to_string(static_cast<int>(v.b)) + " extra " +
         std::to_string(static_cast<int>(v.extra)) + " gap " + std::to_string(v.gap);
}

/// The error of a library that rounds the product to the type of C before it adds terms to it or
/// multiplies it by GELU's gradient, as cuBLASLt does for some sizes (13.1 on an H200).
template <class Out>
double early_rounding(Extra extra, double product, double terms) {
  if (tensor::on_host || extra == Extra::none || dtype_of<Out> == Dtype::fp32) return 0;
  return round_off<Out> * (std::abs(product) + terms);
}

/// The bound is that of an fp32 sum of k rounded products and at most three more terms.
template <class T, class Out>
void check(Gemm& gemm, const Problem<T>& problem, const Variant& v) {
  const auto [m, n, k] = problem.s;
  const Index a_gap = v.gap, b_gap = 2 * v.gap, c_stride = n + 3 * v.gap;
  const Guarded<T> a(assign_offsets(problem.a, m, k, v.a, a_gap)),
      b(assign_offsets(problem.b, k, n, v.b, b_gap));
  const auto bias = numbers<T>(n, 3), addend = numbers<T>(m * n, 4);
  const auto before = numbers<Out>(m * n, 5);
  const auto hidden = numbers<T>(m * n, 6, 4);
  const Guarded<T> bias_range(bias), addend_range(addend), hidden_range(hidden);
  std::vector<Out> start(m * c_stride, Out(gap_value));
  const Out unset(std::numeric_limits<float>::quiet_NaN());
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j)
      start[i * c_stride + j] = accumulates(v.extra) ? before[i * n + j] : unset;
  }
  const Guarded<Out> c(start);
  GemmProblem p{.m = m,
                .n = n,
                .k = k,
                .a = {a.data(), (v.a == Transpose::no ? k : m) + a_gap, v.a},
                .b = {b.data(), (v.b == Transpose::no ? n : k) + b_gap, v.b},
                .c = c.data(),
                .c_stride = c_stride,
                .in = dtype_of<T>,
                .out = dtype_of<Out>};
  if (has_bias(v.extra)) p.bias = bias_range.data();
  if (has_addend(v.extra)) p.addend = addend_range.data();
  if (accumulates(v.extra)) p.accumulate = Accumulate::yes;
  if (has_gelu_gradient(v.extra)) p.gelu_input = hidden_range.data();
  gemm.run(Execution(), p);

  const auto result = c.host();
  std::vector<Out> values;
  std::vector<Bounded> expected;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      const Index at = i * n + j;
      double value = problem.value[at], size = problem.size[at], terms = 0;
      const auto add = [&](double term) { value += term, terms += std::abs(term); };
      if (has_bias(v.extra)) add(as_double(bias[j]));
      if (has_addend(v.extra)) add(as_double(addend[at]));
      if (accumulates(v.extra)) add(as_double(before[at]));
      size += terms;
      double error = gamma(k + 3) * size + early_rounding<Out>(v.extra, problem.value[at], terms);
      if (has_gelu_gradient(v.extra)) {
        const Bounded gradient = gelu_gradient(as_double(hidden[at]));
        error = error * (std::abs(gradient.value) + gradient.error) + size * gradient.error;
        value *= gradient.value;
      }
      values.push_back(result[i * c_stride + j]);
      expected.push_back(stored<Out>(value, error));
    }
    for (Index j = n; j < c_stride; ++j)
      ASSERT_EQ(as_double(result[i * c_stride + j]), as_double(Out(gap_value)));
  }
  expect_close(values, expected, name_of(problem.s, v));
}

/// Checks every feature of the back end with this size.
template <class T>
void check_all(Gemm& gemm, const Problem<T>& problem) {
  for (const Transpose a : {Transpose::no, Transpose::yes}) {
    for (const Transpose b : {Transpose::no, Transpose::yes}) {
      for (const Extra extra : extras) {
        if (has_gelu_gradient(extra) &&
            (a == Transpose::yes || !gemm.fuses_gelu_gradient(dtype_of<T>, problem.s.n)))
          continue;
        for (const Index gap : {0, 3}) {
          check<T, T>(gemm, problem, {a, b, extra, gap});
          if (dtype_of<T> != Dtype::fp32 && (extra == Extra::none || extra == Extra::accumulate))
            check<T, float>(gemm, problem, {a, b, extra, gap});
        }
      }
    }
  }
}

constexpr Index gelu_count = 4096;

/// A fused gradient must be that of GELU's tanh form. The error-function form differs from it by up
/// to 9e-4. The test compares the sums of squared distances to both forms over [-4,4].
template <class T>
void check_gelu_form(Gemm& gemm) {
  constexpr Index count = gelu_count;
  const auto hidden = numbers<T>(count, 7, 4);
  const Guarded<T> one(std::vector<T>{T(1.0F)}), ones(std::vector<T>(count, T(1.0F))), c(count);
  const Guarded<T> hidden_range(hidden);
  GemmProblem p{.m = 1, .n = count, .k = 1, .a = {one.data(), 1}, .b = {ones.data(), count}};
  p.c = c.data(), p.c_stride = count;
  p.in = p.out = dtype_of<T>;
  p.gelu_input = hidden_range.data();
  gemm.run(Execution(), p);
  const auto result = c.host();
  double to_tanh = 0, to_erf = 0;
  for (Index i = 0; i < count; ++i) {
    const double x = as_double(hidden[i]), y = as_double(result[i]);
    const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);
    to_tanh += std::pow(y - gelu_gradient(x).value, 2);
    to_erf += std::pow(y - 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) - x * density, 2);
  }
  EXPECT_LT(to_tanh, to_erf);
}

}  // namespace kzero::tests
