#include "kernels/attention/cached_attention.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using tests::as_double;

template <class T>
class CachedAttention : public testing::Test {};
TYPED_TEST_SUITE(CachedAttention, Elements, );

/// Full sequences [S, T, ..] of queries, keys and values. Every position is a row.
template <class T>
struct CachedCase {
  CacheShape shape;
  Index window;  // 0: none
  float scale;   // 0: 1 / sqrt(d)
  Index rows;
  std::vector<T> q, k, v;

  CachedCase(const CacheShape& s, Index of_window, float of_scores)
      : shape(s),
        window(of_window),
        scale(of_scores),
        rows(s.sequences * s.capacity),
        q(numbers<T>(rows * s.heads * s.head_width, 1, 2)),
        k(numbers<T>(rows * s.kv_heads * s.head_width, 2, 2)),
        v(numbers<T>(rows * s.kv_heads * s.head_width, 3)) {}

  Index q_width() const { return shape.heads * shape.head_width; }
  Index kv_width() const { return shape.kv_heads * shape.head_width; }
  std::string name() const {
    return std::to_string(shape.sequences) + " x " + std::to_string(shape.capacity) + ", heads " +
           std::to_string(shape.heads) + "/" + std::to_string(shape.kv_heads) + " of " +
           std::to_string(shape.head_width) + ", window " + std::to_string(window) + ", scale " +
           std::to_string(scale);
  }
};

/// One head of one row. Scores have the error of their sums. This multiplies a probability's error
/// by e^(twice the largest score error). Every block except the last scales the sums once.
template <class T>
void plain_head(const CachedCase<T>& c, Index row, Index head, std::vector<Bounded>& expected) {
  const CacheShape& s = c.shape;
  const Index d = s.head_width, kv_head = head / (s.heads / s.kv_heads);
  const Index position = row % s.capacity;
  const double factor = c.scale == 0 ? 1 / std::sqrt(static_cast<double>(d)) : c.scale;
  const Index hidden = c.window > 0 ? std::max<Index>(0, position + 1 - c.window) : 0;
  const Index first = row / s.capacity * s.capacity + hidden, seen = position + 1 - hidden;
  std::vector<double> scores;
  double largest = -1e300, lowest = 1e300, score_error = 0, total = 0;
  for (Index j = 0; j < seen; ++j) {
    double score = 0, size = 0;
    for (Index e = 0; e < d; ++e) {
      const double term = as_double(c.q[row * c.q_width() + head * d + e]) *
                          as_double(c.k[(first + j) * c.kv_width() + kv_head * d + e]) * factor;
      score += term, size += std::abs(term);
    }
    scores.push_back(score);
    largest = std::max(largest, score), lowest = std::min(lowest, score);
    score_error = std::max(score_error, gamma(d + 4) * size + 2 * u * std::abs(score));
  }
  for (double& score : scores) total += score = std::exp(score - largest);
  const Index blocks = ceil_div(seen, cache_block) + 1;
  const double relative =
      2 * (std::expm1(2 * score_error) +
           static_cast<double>(blocks + 1) *
               (exponential_error(lowest - largest) + 4 * u * std::abs(largest) + 8 * u)) +
      gamma(2 * seen + 4);
  for (Index e = 0; e < d; ++e) {
    double value = 0, size = 0;
    for (Index j = 0; j < seen; ++j) {
      const double term =
          scores[j] / total * as_double(c.v[(first + j) * c.kv_width() + kv_head * d + e]);
      value += term, size += std::abs(term);
    }
    expected.push_back(stored<T>(value, std::abs(relative) * size));
  }
}

/// A cache on the device.
template <class T>
struct GuardedCache {
  Guarded<T> keys, values;

  explicit GuardedCache(const CacheShape& s)
      : keys(std::vector<T>(s.elements(), T(0.0F))),
        values(std::vector<T>(s.elements(), T(0.0F))) {}
  KeyValueCache<T> view() const { return {keys.data(), values.data()}; }
};

/// Stores the keys and values of the given rows of the case in one call, then attends. The cache
/// has the shape `kept`.
template <class T>
std::vector<T> attend_rows(const CachedCase<T>& c, const GuardedCache<T>& cache,
                           const std::vector<Index>& numbers, const CacheShape& kept) {
  std::vector<Index> sequences, positions;
  std::vector<T> q, k, v;
  for (const Index row : numbers) {
    sequences.push_back(row / c.shape.capacity), positions.push_back(row % c.shape.capacity);
    q.insert(q.end(), c.q.begin() + row * c.q_width(), c.q.begin() + (row + 1) * c.q_width());
    k.insert(k.end(), c.k.begin() + row * c.kv_width(), c.k.begin() + (row + 1) * c.kv_width());
    v.insert(v.end(), c.v.begin() + row * c.kv_width(), c.v.begin() + (row + 1) * c.kv_width());
  }
  const auto count = static_cast<Index>(numbers.size());
  const Guarded<Index> sequence(sequences), position(positions);
  const Guarded<T> queries(q), keys(k), values(v), out(count * c.q_width());
  const RowPlaces places{sequence.vector(), position.vector()};
  store_keys_values<T>(Execution(), kept, places, {keys.data(), c.kv_width()},
                       {values.data(), c.kv_width()}, cache.view());
  cached_attention<T>(Execution(), kept, places, {queries.data(), c.q_width()}, cache.view(),
                      out.matrix(count, c.q_width()), c.window, c.scale);
  return out.host();
}

template <class T>
void check_cached(const CacheShape& shape, Index window = 0, float scale = 0) {
  const CachedCase<T> c(shape, window, scale);
  std::vector<Index> all(c.rows);
  for (Index row = 0; row < c.rows; ++row) all[row] = row;
  std::vector<Bounded> expected;
  for (const Index row : all) {
    for (Index head = 0; head < shape.heads; ++head) plain_head(c, row, head, expected);
  }
  const GuardedCache<T> whole(shape), stepwise(shape);
  const auto at_once = attend_rows(c, whole, all, shape);
  expect_close(at_once, expected, c.name());
  // One position of all sequences at a time, in reverse order of sequences, gives the same bits.
  for (Index t = 0; t < shape.capacity; ++t) {
    std::vector<Index> step;
    for (Index s = shape.sequences - 1; s >= 0; --s) step.push_back(s * shape.capacity + t);
    const auto rows = attend_rows(c, stepwise, step, shape);
    for (std::size_t i = 0; i < step.size(); ++i) {
      const auto part = [&](const std::vector<T>& from, Index row) {
        return std::vector<T>(from.begin() + row * c.q_width(),
                              from.begin() + (row + 1) * c.q_width());
      };
      ASSERT_TRUE(tests::same_bits(part(rows, static_cast<Index>(i)), part(at_once, step[i])))
          << c.name() << ", row " << step[i];
    }
  }
}

TYPED_TEST(CachedAttention, MatchesThePlainLoopAndStepsHaveTheSameBits) {
  check_cached<TypeParam>({1, 1, 1, 1, 1});
  check_cached<TypeParam>({2, 5, 3, 3, 7});
  check_cached<TypeParam>({3, 67, 6, 2, 10});
  check_cached<TypeParam>({1, 131, 2, 1, 33});
  check_cached<TypeParam>({2, 64, 4, 4, 64});
  for (const Index window : {1, 5, 64, 65, 130})
    check_cached<TypeParam>({2, 131, 2, 1, 10}, window);
}

/// Compares a cache for a window with one of all positions, in passes over one sequence and over
/// the next.
template <class T>
void check_window_cache(const CacheShape& shape, Index window, Index rows) {
  const CachedCase<T> c(shape, window, 0);
  const CacheShape kept = shape.in_window(window, rows);
  ASSERT_LT(kept.blocks(), shape.blocks());
  const GuardedCache<T> all(shape), ring(kept);
  for (Index begin = 0; begin < shape.capacity; begin += rows) {
    for (Index s = 0; s < shape.sequences; ++s) {
      std::vector<Index> pass;
      for (Index t = begin; t < std::min(begin + rows, shape.capacity); ++t)
        pass.push_back(s * shape.capacity + t);
      ASSERT_TRUE(
          tests::same_bits(attend_rows(c, ring, pass, kept), attend_rows(c, all, pass, shape)))
          << c.name() << ", " << rows << " rows from " << begin;
    }
  }
}

TYPED_TEST(CachedAttention, KeepsTheBitsInACacheForTheWindow) {
  for (const Index rows : {1, 5, 64, 65}) {
    for (const Index window : {1, 33, 64, 65, 100})
      check_window_cache<TypeParam>({2, 400, 2, 1, 10}, window, rows);
  }
}

TYPED_TEST(CachedAttention, MultipliesScoresByAnotherFactor) {
  check_cached<TypeParam>({2, 67, 4, 2, 10}, 0, 0.75F);
  check_cached<TypeParam>({2, 67, 4, 2, 10}, 40, 0.011F);
}

}  // namespace

}  // namespace kzero::kernels
