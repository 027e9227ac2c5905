#include "kernels/reduction.hpp"
#include "kernels/pairwise_sum.hpp"
#include "kernels/row_sums.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <limits>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

template <class T>
class Reduction : public testing::Test {};
TYPED_TEST_SUITE(Reduction, Elements, );

/// The sum of a column of x [rows, stride] and of `before`. It has one rounding per row, and one
/// more.
template <class T, class X>
Bounded column_sum(const std::vector<X>& x, Index rows, Index stride, Index column, double before) {
  double total = before, size = std::abs(before);
  for (Index i = 0; i < rows; ++i) {
    total += as_double(x[i * stride + column]);
    size += std::abs(as_double(x[i * stride + column]));
  }
  return stored<T>(total, gamma(rows + 1) * size);
}

TYPED_TEST(Reduction, SumRowsMatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    for (const Accumulate mode : {Accumulate::no, Accumulate::yes}) {
      const auto x = numbers<T>(rows * width, 1), before = numbers<T>(width, 2);
      const Guarded<T> input(x);
      const Guarded<float> partial(row_groups * width);
      Guarded<T> out(width);
      if (mode == Accumulate::yes) out.set(before);
      sum_rows<T>(Execution(), input.matrix(rows, width), mode, out.vector(),
                  partial.matrix(row_groups, width));
      std::vector<Bounded> expected;
      for (Index j = 0; j < width; ++j) {
        expected.push_back(
            column_sum<T>(x, rows, width, j, mode == Accumulate::yes ? as_double(before[j]) : 0));
      }
      expect_close(out.host(), expected, name + (mode == Accumulate::yes ? " added" : ""));
    }
  });
}

TYPED_TEST(Reduction, SumGroupsTakesTheColumnsOfEachResult) {
  using T = TypeParam;
  for (const Index width : widths) {
    const Index stride = max_sums * width + 3;
    const auto partial = numbers<float>(row_groups * stride, 1);
    const Guarded<float> input(partial);
    for (const Accumulate mode : {Accumulate::no, Accumulate::yes}) {
      std::vector<std::vector<T>> before;
      std::deque<Guarded<T>> outs;
      for (int r = 0; r < max_sums; ++r) {
        before.push_back(numbers<T>(width, 2 + r));
        outs.emplace_back(width);
        if (mode == Accumulate::yes) outs.back().set(before.back());
      }
      const auto in = input.matrix(row_groups, stride);
      const auto out = [&](int r) { return outs[r].vector(); };
      sum_groups<T>(Execution(), in, mode, {out(0), out(1), out(2)});
      if (mode == Accumulate::no) sum_groups<T>(Execution(), in, mode, {out(0)});
      for (int r = 0; r < 3; ++r) {
        std::vector<Bounded> expected;
        for (Index j = 0; j < width; ++j) {
          const double onto = mode == Accumulate::yes ? as_double(before[r][j]) : 0;
          expected.push_back(column_sum<T>(partial, row_groups, stride, r * width + j, onto));
        }
        expect_close(outs[r].host(), expected,
                     std::to_string(width) + " result " + std::to_string(r));
      }
      if (mode == Accumulate::yes) {
        EXPECT_TRUE(tests::same_bits(outs[3].host(), before[3])) << "not a result";
      }
      sum_groups<T>(Execution(), in, Accumulate::no, {out(3), out(2), out(1), out(0)});
      std::vector<Bounded> last;
      for (Index j = 0; j < width; ++j)
        last.push_back(column_sum<T>(partial, row_groups, stride, 3 * width + j, 0));
      expect_close(outs[0].host(), last, std::to_string(width) + " the last of four");
    }
  }
}

constexpr Index square_counts[] = {0,
                                   1,
                                   31,
                                   squares_block - 1,
                                   squares_block,
                                   257,
                                   3 * squares_block + 17,
                                   20011,
                                   128 * squares_block};

template <class T>
ExactSum exact_squares(const std::vector<T>& x, Index first = 0) {
  const Guarded<T> input(x);
  const Guarded<ExactSum> sum(1);
  sum_of_squares<T>(Execution(), input.vector(), first, sum.data());
  return sum.host()[0];
}

template <class T>
double squares(const std::vector<T>& x) {
  return exact_squares(x).value();
}

TEST(ExactSums, AddUpOnTheDevice) {
  const ExactSum part = exact_squares(numbers<float>(20011, 1)),
                 before = exact_squares(numbers<float>(127, 2));
  const Guarded<ExactSum> input({part}), sum({before});
  add_exact_sum(Execution(), input.data(), sum.data());
  ExactSum expected = before;
  expected += part;
  EXPECT_TRUE(tests::same_bits(sum.host(), std::vector<ExactSum>{expected}));
  EXPECT_NE(expected.value(), before.value());
}

TEST(SumInOrder, IsTheLoopInFp64) {
  for (const Index count : {1, 2, 31, 257, 20011}) {
    const auto x = numbers<float>(count, 1, 1e3);
    double expected = 0, size = 0;
    for (const float value : x) {
      expected += static_cast<double>(value);
      size += std::abs(static_cast<double>(value));
    }
    const Guarded<float> input(x);
    const Guarded<double> sum(1);
    sum_in_order(Execution(), input.vector(), sum.data());
    const double found = sum.host()[0];
    if (tensor::on_host) {
      EXPECT_EQ(found, expected) << count;
    } else {
      EXPECT_NEAR(found, expected, static_cast<double>(count) * 0x1p-53 * size) << count;
    }
  }
}

TEST(SumInOrder, MultipliesByWeightsExactly) {
  const auto x = numbers<float>(257, 1, 1e3), weights = numbers<float>(257, 2, 1e3);
  double expected = 0, size = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double product = static_cast<double>(weights[i]) * static_cast<double>(x[i]);
    expected += product;
    size += std::abs(product);
  }
  const Guarded<float> input(x), factors(weights), ones(std::vector<float>(x.size(), 1));
  const auto sum_of = [&](Vector<const float> by) {
    const Guarded<double> sum(1);
    sum_in_order(Execution(), input.vector(), sum.data(), by);
    return sum.host()[0];
  };
  EXPECT_NEAR(sum_of(factors.vector()), expected, tensor::on_host ? 0 : 257 * 0x1p-53 * size);
  EXPECT_EQ(sum_of(ones.vector()), sum_of({}));
}

TYPED_TEST(Reduction, SumOfSquaresMatchesThePlainLoop) {
  for (const Index count : square_counts) {
    const auto x = numbers<TypeParam>(count, 1);
    double expected = 0;
    for (const auto value : x) expected += as_double(value) * as_double(value);
    // All terms are positive, so the bound is the relative error of an fp32 block. The rest is in
    // double.
    EXPECT_NEAR(squares(x), expected, gamma(squares_block + 1) * expected) << count;
  }
}

TYPED_TEST(Reduction, SumOfSquaresIsNotFiniteIfAnyElementIsNot) {
  for (const float bad : {INFINITY, -INFINITY, std::numeric_limits<float>::quiet_NaN()}) {
    const Index count = 2 * squares_block + 5;
    for (const Index at : {Index{0}, squares_block - 1, squares_block, count - 1}) {
      auto x = numbers<TypeParam>(count, 1);
      x[at] = TypeParam(bad);
      EXPECT_FALSE(std::isfinite(squares(x))) << bad << " at " << at;
    }
  }
}

TYPED_TEST(Reduction, SumOfSquaresDoesNotDependOnHowAUnitIsDivided) {
  using T = TypeParam;
  const Index count = 300 * squares_block + 17;
  const auto x = numbers<T>(count, 1);
  const double expected = squares(x);
  const auto part = [&](Index begin, Index end) {
    return exact_squares(std::vector<T>(x.begin() + begin, x.begin() + end), begin);
  };
  for (const Index shard : {squares_block, 7 * squares_block, 150 * squares_block}) {
    ExactSum sum;
    for (Index begin = 0; begin < count; begin += shard)
      sum += part(begin, std::min(count, begin + shard));
    EXPECT_EQ(sum.value(), expected) << shard;
  }
  // A parameter that begins and ends within blocks and is divided by shards.
  const Index begin = 13, middle = 5 * squares_block, end = 9 * squares_block + 31;
  const double whole = part(begin, end).value();
  ExactSum parts = part(begin, middle);
  parts += part(middle, end);
  EXPECT_EQ(parts.value(), whole);
}

// Ranges of several units, each with its own first element, some empty.
TYPED_TEST(Reduction, SumOfSquaresOfManyRangesIsTheSumOfTheirs) {
  using T = TypeParam;
  const auto x = numbers<T>(30000, 1);
  const Guarded<T> input(x);
  SquaresTable<T> ranges;
  EXPECT_TRUE(ranges.is_empty());
  ExactSum expected;
  for (Index begin = 0; !ranges.is_full(); ++begin) {
    const Index count = begin % 5 * 331 + begin % 3, first = begin * 29;
    expected += exact_squares(
        std::vector<T>(x.begin() + begin * 100, x.begin() + begin * 100 + count), first);
    ranges.add({input.data() + begin * 100, first, count});
  }
  const Guarded<ExactSum> sum(1);
  sum_of_squares<T>(Execution(), ranges, sum.data());
  EXPECT_EQ(sum.host()[0].value(), expected.value());
  ranges.clear();
  EXPECT_TRUE(ranges.is_empty());
}

/// The ranks' values for element i, with rank `own`'s from `mine`, summed as specified for
/// add_terms with a single block.
template <class T>
float plain_sum(const std::vector<T>& sources, Index stride, const std::vector<T>& mine, int ranks,
                int own, Index i, float total = 0) {
  for (int r = 0; r < ranks; ++r)
    total += static_cast<float>(r == own ? mine[i] : sources[r * stride + i]);
  return total;
}

TYPED_TEST(Reduction, OrderedSumIsTheFp32LoopOverRanksBitForBit) {
  using T = TypeParam;
  for (const int ranks : {1, 2, 3, 8}) {
    for (const Index count : widths) {
      const Index stride = count + 5;
      const auto sources = numbers<T>(ranks * stride, 1, 100), mine = numbers<T>(count, 2, 0.01);
      const auto before = numbers<float>(count, 3, 10);
      for (int own = 0; own < ranks; ++own) {
        std::vector<T> in_place, added;
        std::vector<float> unrounded;
        for (Index i = 0; i < count; ++i) {
          const float total = plain_sum(sources, stride, mine, ranks, own, i);
          in_place.push_back(static_cast<T>(total));
          const float onto = plain_sum(sources, stride, mine, ranks, own, i, before[i]);
          added.push_back(static_cast<T>(onto));
          unrounded.push_back(onto);
        }
        const Guarded<T> input(sources), self(mine), out(count);
        const Guarded<float> wide(before);
        const RankValues<T> values{input.data(), stride, self.data(), ranks, own};
        // The base is the open sum of a block that began before these terms.
        const Terms onto{.first = 1, .block = ranks + 1}, from_first{.block = ranks};
        add_terms<T, T>(Execution(), values, onto, {.oldest = wide.data()}, out.vector());
        EXPECT_TRUE(tests::same_bits(out.host(), added)) << count << " of " << own << "/" << ranks;
        add_terms<T, float>(Execution(), values, onto, {.oldest = wide.data()}, wide.vector());
        EXPECT_TRUE(tests::same_bits(wide.host(), unrounded)) << "onto its own base";
        add_terms<T, T>(Execution(), values, from_first, {}, self.vector());
        EXPECT_TRUE(tests::same_bits(self.host(), in_place)) << "onto its own values";
        EXPECT_TRUE(tests::same_bits(input.host(), sources));
      }
      // A rank without its own values sums those of the others.
      const Guarded<T> input(sources), self(mine), out(count);
      std::vector<T> others;
      for (Index i = 0; i < count; ++i)
        others.push_back(static_cast<T>(plain_sum(sources, stride, mine, ranks, ranks, i)));
      add_terms<T, T>(Execution(), {input.data(), stride, self.data(), ranks, ranks},
                      {.block = ranks}, {}, out.vector());
      EXPECT_TRUE(tests::same_bits(out.host(), others)) << count << " of none/" << ranks;
    }
  }
}

TYPED_TEST(Reduction, SumOfPartialRowsIsTheFp32LoopOverRanksBitForBit) {
  using T = TypeParam;
  for (const int ranks : {2, 3, 8}) {
    for_each_shape([&](Index rows, Index width, const std::string& name) {
      const Index count = rows * width, stride = count + 5;
      const auto sources = numbers<T>(ranks * stride, 1, 100), mine = numbers<T>(count, 2, 0.01);
      const auto bias = numbers<T>(width, 3, 10), addend = numbers<T>(count, 4, 10);
      const int own = ranks / 2;
      std::vector<T> plain, added;
      for (Index i = 0; i < count; ++i) {
        const float total = plain_sum(sources, stride, mine, ranks, own, i);
        plain.push_back(static_cast<T>(total));
        added.push_back(static_cast<T>(total + static_cast<float>(bias[i % width]) +
                                       static_cast<float>(addend[i])));
      }
      const Guarded<T> input(sources), self(mine), b(bias), onto(addend);
      const RankValues<T> values{input.data(), stride, self.data(), ranks, own};
      sum_partial_rows<T>(Execution(), values, b.data(), onto.data(), onto.matrix(rows, width));
      EXPECT_TRUE(tests::same_bits(onto.host(), added)) << name << ", onto its addend";
      sum_partial_rows<T>(Execution(), values, nullptr, nullptr, self.matrix(rows, width));
      EXPECT_TRUE(tests::same_bits(self.host(), plain)) << name << ", onto its own values";
    });
  }
}

}  // namespace

}  // namespace kzero::kernels
