#include "kernels/row.hpp"

#include <gtest/gtest.h>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

template <class T>
class Row : public testing::Test {};
TYPED_TEST_SUITE(Row, Elements, );

enum class Way { chosen, device };

/// Computes out = x y + 1 from element `first` of an fp32 array and a T array. The elements around
/// them must not change.
template <class T>
void check_map(Way way, Index first, Index count) {
  const Index size = 80;
  const auto x = numbers<float>(size, 1);
  const auto y = numbers<T>(size, 2), before = numbers<T>(size, 3);
  const Guarded<float> a(x);
  const Guarded<T> b(y), result(before);
  const Vector<float> in = a.vector();
  const Vector<T> other = b.vector(), out = result.vector();
  Kokkos::parallel_for(
      "kzero::tests::map", Policy(Execution(), 1, Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const auto f = [](auto xi, auto yi) { return xi * yi + 1.0F; };
        const float* left = &in(first);
        const T* right = &other(first);
        if (way == Way::device) {
          detail::device_map(team, count, &out(first), f, left, right);
        } else {
          map(team, count, &out(first), f, left, right);
        }
      });
  std::vector<Bounded> expected;
  for (Index i = 0; i < size; ++i) {
    const double value = x[i] * tests::as_double(y[i]) + 1;
    const bool mapped = i >= first && i < first + count;
    expected.push_back(mapped ? stored<T>(value, gamma(2) * 2)
                              : Bounded{tests::as_double(before[i]), 0});
  }
  expect_close(result.host(), expected,
               std::to_string(count) + " elements from " + std::to_string(first));
}

TYPED_TEST(Row, MapMatchesThePlainLoop) {
  for (const Way way : {Way::chosen, Way::device}) {
    for (const Index first : {0, 1, 4, 8}) {
      for (const Index count : {0, 1, 7, 8, 9, 31, 64}) check_map<TypeParam>(way, first, count);
    }
  }
}

/// Swaps and doubles the first `count` elements of two arrays in place, as a team or as one thread.
template <class T, class Threads>
KOKKOS_INLINE_FUNCTION void swap_doubled(Way way, const Threads& threads, Index count, T* a, T* b) {
  const auto f = [](auto x, auto y) { return Pair<decltype(x)>{2.0F * y, 2.0F * x}; };
  const T *left = a, *right = b;
  if (way == Way::device) {
    detail::device_map_pairs(threads, count, a, b, f, left, right);
  } else {
    map_pairs(threads, count, a, b, f, left, right);
  }
}

template <class T>
void swap_by_team_and_by_thread(Way way, Index count, const std::array<Vector<T>, 2>& by_team,
                                const std::array<Vector<T>, 2>& by_thread) {
  const Vector<T> a = by_team[0], b = by_team[1], c = by_thread[0], d = by_thread[1];
  Kokkos::parallel_for(
      "kzero::tests::map_pairs", Policy(Execution(), 1, team_size(2), vector_length(8)),
      KOKKOS_LAMBDA(const Team& team) {
        swap_doubled(way, team, count, a.data(), b.data());
        Kokkos::parallel_for(Kokkos::TeamThreadRange(team, 1), [&](int) {
          swap_doubled(way, Lanes{team}, count, c.data(), d.data());
        });
      });
}

TYPED_TEST(Row, MapPairsMayWriteToItsInputs) {
  using T = TypeParam;
  for (const Way way : {Way::chosen, Way::device}) {
    for (const Index count : {0, 1, 7, 8, 9, 31, 64}) {
      const auto x = numbers<T>(80, 1), y = numbers<T>(80, 2);
      const Guarded<T> a(x), b(y), c(x), d(y);
      swap_by_team_and_by_thread<T>(way, count, {a.vector(), b.vector()}, {c.vector(), d.vector()});
      const auto first = a.host(), second = b.host();
      for (Index i = 0; i < 80; ++i) {
        const double xi = tests::as_double(x[i]), yi = tests::as_double(y[i]);
        EXPECT_EQ(tests::as_double(first[i]), i < count ? 2 * yi : xi) << i << " of " << count;
        EXPECT_EQ(tests::as_double(second[i]), i < count ? 2 * xi : yi) << i << " of " << count;
      }
      EXPECT_TRUE(tests::same_bits(c.host(), first));
      EXPECT_TRUE(tests::same_bits(d.host(), second));
    }
  }
}

/// The sum of x y over [first, first + count).
template <class T>
float product_sum(Way way, const Vector<float>& x, const Vector<T>& y, Index first, Index count) {
  const Guarded<float> result(1);
  const Vector<float> out = result.vector();
  Kokkos::parallel_for(
      "kzero::tests::sum", Policy(Execution(), 1, Kokkos::AUTO), KOKKOS_LAMBDA(const Team& team) {
        const auto f = [](float xi, float yi) { return xi * yi; };
        const float* left = x.data() + first;
        const T* right = y.data() + first;
        const float total = way == Way::device ? detail::device_sum(team, count, f, left, right)
                                               : sum_of(team, count, f, left, right);
        Kokkos::single(Kokkos::PerTeam(team), [=]() { out(0) = total; });
      });
  return result.host()[0];
}

TYPED_TEST(Row, SumMatchesThePlainLoop) {
  const Index size = 80;
  const auto x = numbers<float>(size, 1);
  const auto y = numbers<TypeParam>(size, 2);
  const Guarded<float> a(x);
  const Guarded<TypeParam> b(y);
  for (const Index first : {0, 1, 4, 8}) {
    for (const Index count : {0, 1, 7, 8, 9, 31, 64}) {
      double total = 0, magnitudes = 0;
      for (Index i = first; i < first + count; ++i) {
        total += x[i] * tests::as_double(y[i]);
        magnitudes += std::abs(x[i] * tests::as_double(y[i]));
      }
      for (const Way way : {Way::chosen, Way::device}) {
        EXPECT_NEAR(product_sum(way, a.vector(), b.vector(), first, count), total,
                    gamma(count + 1) * magnitudes)
            << count << " elements from " << first;
      }
    }
  }
}

// A share's location in memory differs between ZeRO stages, but its sums must not differ.
TYPED_TEST(Row, SumHasTheSameBitsWhereverTheArraysLie) {
  for (const Index count : {1, 7, 8, 9, 31, 64, 1000}) {
    const auto x = numbers<float>(count, 1, 100);
    const auto y = numbers<TypeParam>(count, 2);
    std::vector<float> sums;
    for (const Index first : {0, 1, 2, 3, 4, 7}) {
      auto shifted_x = numbers<float>(count + 8, 3);
      auto shifted_y = numbers<TypeParam>(count + 8, 4);
      std::copy(x.begin(), x.end(), shifted_x.begin() + first);
      std::copy(y.begin(), y.end(), shifted_y.begin() + first);
      const Guarded<float> a(shifted_x);
      const Guarded<TypeParam> b(shifted_y);
      sums.push_back(product_sum(Way::device, a.vector(), b.vector(), first, count));
    }
    EXPECT_TRUE(tests::same_bits(sums, std::vector(sums.size(), sums.front()))) << count;
  }
}

template <class T>
void double_in_place(const Vector<T>& inout) {
  Kokkos::parallel_for(
      "kzero::tests::map_in_place", Policy(Execution(), 1, Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const auto twice = [](float x) { return 2 * x; };
        const T* in = inout.data();
        detail::device_map(team, static_cast<Index>(inout.size()), inout.data(), twice, in);
      });
}

TYPED_TEST(Row, MapMayWriteToItsInput) {
  for (const Index count : {3, 64}) {
    const auto before = numbers<TypeParam>(count, 1);
    const Guarded<TypeParam> row(before);
    double_in_place(row.vector());
    const auto after = row.host();
    for (Index i = 0; i < count; ++i)
      EXPECT_EQ(tests::as_double(after[i]), 2 * tests::as_double(before[i])) << i;
  }
}

}  // namespace

}  // namespace kzero::kernels
