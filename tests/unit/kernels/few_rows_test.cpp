#include "kernels/few_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

template <class T>
class FewRowsLayer : public testing::Test {};
TYPED_TEST_SUITE(FewRowsLayer, Elements, );

enum class Added { nothing, bias, bias_and_addend };

struct LayerCase {
  Index rows, in, out;
  WeightOrder order;
  Added added;

  Index weight_at(Index k, Index column) const {
    return order == WeightOrder::in_out ? k * out + column : column * in + k;
  }
  std::string name() const {
    return std::to_string(rows) + " x " + std::to_string(in) + " x " + std::to_string(out) +
           (order == WeightOrder::in_out ? ", in out, " : ", out in, ") +
           std::to_string(static_cast<int>(added));
  }
};

template <class T>
struct LayerOperands {
  std::vector<T> x, weight, bias, addend;

  explicit LayerOperands(const LayerCase& c)
      : x(numbers<T>(c.rows * c.in, 1)),
        weight(numbers<T>(c.in * c.out, 2)),
        bias(numbers<T>(c.out, 3)),
        addend(numbers<T>(c.rows * c.out, 4)) {}
};

template <class Out, class T>
std::vector<Bounded> plain_layer(const LayerCase& c, const LayerOperands<T>& o) {
  std::vector<Bounded> expected;
  for (Index i = 0; i < c.rows; ++i) {
    for (Index j = 0; j < c.out; ++j) {
      double total = 0, size = 0;
      const auto add = [&](double term) { total += term, size += std::abs(term); };
      for (Index k = 0; k < c.in; ++k)
        add(as_double(o.x[i * c.in + k]) * as_double(o.weight[c.weight_at(k, j)]));
      if (c.added != Added::nothing) add(as_double(o.bias[j]));
      if (c.added == Added::bias_and_addend) add(as_double(o.addend[i * c.out + j]));
      expected.push_back(stored<Out>(total, gamma(c.in + 4) * size));
    }
  }
  return expected;
}

/// The result for rows [first, first + rows) of the case.
template <class Out, class T>
std::vector<Out> computed(const LayerCase& c, const LayerOperands<T>& o, Index first, Index rows) {
  const auto from = [&](const std::vector<T>& all, Index width) {
    return std::vector<T>(all.begin() + first * width, all.begin() + (first + rows) * width);
  };
  const Guarded<T> x(from(o.x, c.in)), weight(o.weight), bias(o.bias),
      addend(from(o.addend, c.out));
  const Guarded<Out> y(rows * c.out);
  const bool is_in_out = c.order == WeightOrder::in_out;
  few_rows_product<T, Out>(
      Execution(),
      {x.matrix(rows, c.in), weight.matrix(is_in_out ? c.in : c.out, is_in_out ? c.out : c.in),
       c.order, c.added == Added::nothing ? nullptr : bias.data(),
       c.added == Added::bias_and_addend ? addend.data() : nullptr},
      y.matrix(rows, c.out));
  return y.host();
}

template <class T>
void check_layer(const LayerCase& c) {
  const LayerOperands<T> o(c);
  const auto all = computed<T>(c, o, 0, c.rows);
  expect_close(all, plain_layer<T>(c, o), c.name());
  expect_close(computed<float>(c, o, 0, c.rows), plain_layer<float>(c, o), c.name() + " fp32");
  for (Index i = 0; i < c.rows; ++i) {
    const std::vector<T> row(all.begin() + i * c.out, all.begin() + (i + 1) * c.out);
    EXPECT_TRUE(tests::same_bits(computed<T>(c, o, i, 1), row)) << c.name() << ", row " << i;
  }
}

TYPED_TEST(FewRowsLayer, MatchesThePlainLoopAndARowAloneHasTheSameBits) {
  for (const auto order : {WeightOrder::in_out, WeightOrder::out_in}) {
    for (const auto added : {Added::nothing, Added::bias, Added::bias_and_addend}) {
      for (const Index rows : {1, 3, 9}) {
        for (const Index in : {1, 7, 64, 131}) check_layer<TypeParam>({rows, in, 67, order, added});
      }
      check_layer<TypeParam>({2, 5, 1, order, added});
      check_layer<TypeParam>({2, 37, 1201, order, added});
    }
  }
}

// As in an in-place addition to the residual stream.
TYPED_TEST(FewRowsLayer, AddsToItsOutputInPlace) {
  const LayerCase c{5, 33, 70, WeightOrder::in_out, Added::bias_and_addend};
  const LayerOperands<TypeParam> o(c);
  const Guarded<TypeParam> x(o.x), weight(o.weight), bias(o.bias), y(o.addend);
  few_rows_product<TypeParam, TypeParam>(
      Execution(), {x.matrix(5, 33), weight.matrix(33, 70), c.order, bias.data(), y.data()},
      y.matrix(5, 70));
  expect_close(y.host(), plain_layer<TypeParam>(c, o), "in place");
}

}  // namespace

}  // namespace kzero::kernels
