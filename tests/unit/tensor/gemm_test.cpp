#include "tensor/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::tensor {

namespace {

using tests::as_double;
using tests::Bounded;
using tests::gamma;
using tests::Guarded;
using tests::numbers;

constexpr float gap_value = -12345.0F;  // what rows of C leave between them

struct Size {
  Index m, n, k;
};

enum class Extra { none, bias, addend, accumulate, bias_and_addend, bias_and_accumulate };
constexpr Extra extras[] = {Extra::none,
                            Extra::bias,
                            Extra::addend,
                            Extra::accumulate,
                            Extra::bias_and_addend,
                            Extra::bias_and_accumulate};

bool has_bias(Extra e) {
  return e == Extra::bias || e == Extra::bias_and_addend || e == Extra::bias_and_accumulate;
}
bool has_addend(Extra e) { return e == Extra::addend || e == Extra::bias_and_addend; }
bool accumulates(Extra e) { return e == Extra::accumulate || e == Extra::bias_and_accumulate; }

/// op(A), op(B) and their product in double; `size` adds up magnitudes, for the error bound.
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

/// A matrix as it lies in memory, with NaN in the gaps: a product that reads them shows.
template <class T>
std::vector<T> lay_out(const std::vector<T>& x, Index rows, Index columns, Transpose transpose,
                       Index gap) {
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

std::string name_of(const Size& s, const Variant& v) {
  return std::to_string(s.m) + " x " + std::to_string(s.n) + " x " + std::to_string(s.k) +
         " transposed " + std::to_string(static_cast<int>(v.a)) +
         std::to_string(static_cast<int>(v.b)) + " extra " +
         std::to_string(static_cast<int>(v.extra)) + " gap " + std::to_string(v.gap);
}

/// An fp32 sum of k products, each rounded, and at most three more terms.
template <class T, class Out>
void check(Gemm& gemm, const Problem<T>& problem, const Variant& v) {
  const auto [m, n, k] = problem.s;
  const Index a_gap = v.gap, b_gap = 2 * v.gap, c_stride = n + 3 * v.gap;
  const Guarded<T> a(lay_out(problem.a, m, k, v.a, a_gap)), b(lay_out(problem.b, k, n, v.b, b_gap));
  const auto bias = numbers<T>(n, 3), addend = numbers<T>(m * n, 4);
  const auto before = numbers<Out>(m * n, 5);
  const Guarded<T> bias_range(bias), addend_range(addend);
  std::vector<Out> start(m * c_stride, Out(gap_value));
  const Out unset(std::numeric_limits<float>::quiet_NaN());
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j)
      start[i * c_stride + j] = accumulates(v.extra) ? before[i * n + j] : unset;
  }
  const Guarded<Out> c(start);
  Product p{.m = m,
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
  gemm.run(Execution(), p);

  const auto result = c.host();
  std::vector<Out> values;
  std::vector<Bounded> expected;
  for (Index i = 0; i < m; ++i) {
    for (Index j = 0; j < n; ++j) {
      const Index at = i * n + j;
      double value = problem.value[at], size = problem.size[at];
      const auto add = [&](double term) { value += term, size += std::abs(term); };
      if (has_bias(v.extra)) add(as_double(bias[j]));
      if (has_addend(v.extra)) add(as_double(addend[at]));
      if (accumulates(v.extra)) add(as_double(before[at]));
      values.push_back(result[i * c_stride + j]);
      expected.push_back(tests::stored<Out>(value, gamma(k + 3) * size));
    }
    for (Index j = n; j < c_stride; ++j)
      ASSERT_EQ(as_double(result[i * c_stride + j]), as_double(Out(gap_value)));
  }
  tests::expect_close(values, expected, name_of(problem.s, v));
}

template <class T>
void check_all(Gemm& gemm, const Problem<T>& problem) {
  for (const Transpose a : {Transpose::no, Transpose::yes}) {
    for (const Transpose b : {Transpose::no, Transpose::yes}) {
      for (const Extra extra : extras) {
        for (const Index gap : {0, 3}) {
          check<T, T>(gemm, problem, {a, b, extra, gap});
          if (dtype_of<T> != Dtype::fp32 && !has_addend(extra)) {
            check<T, float>(gemm, problem, {a, b, extra, gap});
          }
        }
      }
    }
  }
}

template <class T>
class GemmBackends : public testing::Test {};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(GemmBackends, Elements, );

std::vector<Backend> backends() {
  if (!on_host) return {Backend::reference};
  return {Backend::onednn, Backend::blas, Backend::reference};
}

TYPED_TEST(GemmBackends, MatchThePlainLoop) {
  for (const Size size : {Size{1, 1, 1}, Size{7, 5, 3}, Size{129, 65, 33}}) {
    const Problem<TypeParam> problem(size);
    for (const Backend backend : backends()) {
      SCOPED_TRACE("backend " + std::to_string(static_cast<int>(backend)));
      check_all(*make_gemm(backend), problem);
    }
  }
}

// One block of the widening backends exactly, and a bit more than one in each direction.
TYPED_TEST(GemmBackends, MatchThePlainLoopAcrossBlocks) {
  using T = TypeParam;
  for (const Size size : {Size{256, 512, 512}, Size{259, 517, 521}}) {
    const Problem<T> problem(size);
    for (const Backend backend : backends()) {
      SCOPED_TRACE("backend " + std::to_string(static_cast<int>(backend)));
      const auto gemm = make_gemm(backend);
      check<T, T>(*gemm, problem, {Transpose::no, Transpose::no, Extra::bias_and_addend, 3});
      check<T, T>(*gemm, problem, {Transpose::no, Transpose::yes, Extra::none, 0});
      check<T, T>(*gemm, problem, {Transpose::yes, Transpose::no, Extra::accumulate, 3});
      check<T, float>(*gemm, problem,
                      {Transpose::yes, Transpose::yes, Extra::bias_and_accumulate, 1});
    }
  }
}

TYPED_TEST(GemmBackends, RepeatTheirBits) {
  using T = TypeParam;
  const Problem<T> problem({129, 65, 33});
  const Guarded<T> a(problem.a), b(problem.b), first(129 * 65), second(129 * 65);
  for (const Backend backend : backends()) {
    const auto gemm = make_gemm(backend);
    for (const auto* c : {&first, &second}) {
      gemm->run(Execution(), {.m = 129,
                              .n = 65,
                              .k = 33,
                              .a = operand(a.matrix(129, 33)),
                              .b = operand(b.matrix(33, 65)),
                              .c = c->data(),
                              .c_stride = 65,
                              .in = dtype_of<T>,
                              .out = dtype_of<T>});
    }
    EXPECT_TRUE(tests::same_bits(first.host(), second.host())) << static_cast<int>(backend);
  }
}

TEST(Operand, DescribesAContiguousView) {
  const Guarded<float> storage(12);
  const Operand plain = operand(storage.matrix(3, 4));
  EXPECT_EQ(plain.data, storage.data());
  EXPECT_EQ(plain.stride, 4);
  EXPECT_EQ(plain.transpose, Transpose::no);
  EXPECT_EQ(operand(storage.matrix(3, 4), Transpose::yes).transpose, Transpose::yes);
}

}  // namespace

}  // namespace kzero::tensor
