#include "kernels/dropout.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "base/philox.hpp"
#include "unit/kernels/cases.hpp"

namespace kzero::kernels::dropping {

namespace {

using tests::as_double;

/// Where an element is: in which layer, sequence of the training, row and column, and the seed.
struct Place {
  std::uint64_t seed = 7;
  Index layer = 5, sequence = 0, row = 0, column = 0;
};

/// A draw as the header describes it, from its place in a row of `width` elements.
std::uint32_t draw(const Place& at, Index width) {
  const Index groups = (width + 63) / 64, group = at.column / 64, in_group = at.column % 64;
  const Philox4 words =
      philox(mixed(at.seed + 0x64726F706F757473),
             static_cast<std::uint64_t>((at.row * groups + group) * 16 + in_group % 16),
             static_cast<std::uint64_t>(at.sequence * 65536 + at.layer));
  return words.word[in_group / 16];
}

bool is_dropped(const Place& at, Index width, double p) {
  return static_cast<double>(draw(at, width)) < std::ldexp(p, 32);
}

constexpr double probability = 0.3;
constexpr Index sequence = 9, first_sequence = 1000;

Dropout masks(double p = probability, Index from = first_sequence, std::uint64_t seed = 7,
              Index layer = 5) {
  return make_dropout(p, seed, layer, from);
}

/// Row i of a matrix that begins at row `first` of the micro-batch.
Place place_of(Index first, Index i, Index column) {
  return {.sequence = first_sequence + (first + i) / sequence,
          .row = (first + i) % sequence,
          .column = column};
}

template <class T>
class DropoutOf : public testing::Test {};
TYPED_TEST_SUITE(DropoutOf, Elements, );

TYPED_TEST(DropoutOf, MatchesThePlainLoop) {
  using T = TypeParam;
  for_each_shape([](Index rows, Index width, const std::string& name) {
    const auto values = numbers<T>(rows * width, 1), addends = numbers<T>(rows * width, 2);
    for (const Index first : {0, 13}) {
      const Guarded<T> from(values), to(rows * width), sum(values), addend(addends);
      const StreamRows at{first, sequence};
      drop<T>({}, masks(), at, from.matrix(rows, width), to.matrix(rows, width));
      add_dropped<T>({}, masks(), at, addend.matrix(rows, width), sum.matrix(rows, width));
      std::vector<Bounded> dropped, added;
      for (Index i = 0; i < rows; ++i) {
        for (Index j = 0; j < width; ++j) {
          const double x = as_double(values[i * width + j]), a = as_double(addends[i * width + j]);
          const bool is_kept = !is_dropped(place_of(first, i, j), width, probability);
          const double value = is_kept ? x / (1 - probability) : 0;
          dropped.push_back(stored<T>(value, 2 * u * std::abs(value)));
          added.push_back(stored<T>(a + value, 2 * u * std::abs(value) + u * std::abs(a + value)));
        }
      }
      expect_close(to.host(), dropped, name);
      expect_close(sum.host(), added, name + " added");
      drop<T>({}, masks(), at, from.matrix(rows, width), from.matrix(rows, width));
      EXPECT_TRUE(tests::same_bits(from.host(), to.host())) << name << " in place";
    }
  });
}

TYPED_TEST(DropoutOf, DropsWhatIsNotFinite) {
  using T = TypeParam;
  const Index width = 257;
  const std::vector<T> values(width, static_cast<T>(INFINITY));
  const Guarded<T> x(values);
  drop<T>({}, masks(), {0, sequence}, x.matrix(1, width), x.matrix(1, width));
  const auto found = x.host();
  for (Index j = 0; j < width; ++j) {
    EXPECT_EQ(as_double(found[j]),
              is_dropped(place_of(0, 0, j), width, probability) ? 0 : INFINITY);
  }
}

/// The elements of ones [rows,width] that a dropout keeps.
std::vector<float> kept(const Dropout& dropout, Index rows, Index width, Index first = 0) {
  const Guarded<float> x(std::vector<float>(rows * width, 1));
  drop<float>({}, dropout, {first, sequence}, x.matrix(rows, width), x.matrix(rows, width));
  return x.host();
}

TEST(Dropout, DropsAtTheRateThatIsAskedFor) {
  constexpr Index rows = 999, width = 1001, count = rows * width;
  for (const double p : {1e-3, 0.1, 0.5, 0.9}) {
    Index zeros = 0;
    for (const float x : kept(masks(p), rows, width)) {
      if (x == 0) {
        ++zeros;
      } else {
        EXPECT_EQ(x, static_cast<float>(1 / (1 - p)));
      }
    }
    // Five standard deviations of a binomial distribution.
    EXPECT_NEAR(static_cast<double>(zeros), count * p, 5 * std::sqrt(count * p * (1 - p))) << p;
  }
}

TEST(Dropout, OfZeroIsOff) {
  EXPECT_FALSE(masks(0).is_on());
  EXPECT_TRUE(masks(0.1).is_on());
  EXPECT_FALSE(Dropout{}.is_on());
}

/// The share of elements that one of two masks drops and the other keeps.
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  Index differ = 0;
  for (std::size_t i = 0; i < a.size(); ++i) differ += (a[i] == 0) != (b[i] == 0) ? 1 : 0;
  return static_cast<double>(differ) / static_cast<double>(a.size());
}

// Independent masks differ in 2 p (1 - p) of their elements.
TEST(Dropout, DrawsOtherMasksForOtherSeedsSamplesAndLayers) {
  constexpr Index rows = sequence, width = 4000;
  const auto one = kept(masks(), rows, width);
  const double expected = 2 * probability * (1 - probability);
  const double bound = 5 * std::sqrt(expected / (rows * width));
  for (const Dropout& other :
       {masks(probability, first_sequence + 1), masks(probability, first_sequence, 8),
        masks(probability, first_sequence, 7, 6)})
    EXPECT_NEAR(difference(one, kept(other, rows, width)), expected, bound);
  EXPECT_EQ(one, kept(masks(), rows, width));
}

// A micro-batch of two sequences has the masks of two micro-batches of one, and parts of the rows
// those of all rows.
TEST(Dropout, DoesNotDependOnHowRowsAreDivided) {
  constexpr Index width = 100;
  const auto all = kept(masks(), 2 * sequence, width);
  std::vector<float> parts = kept(masks(), 4, width);
  const auto append = [&](const std::vector<float>& more) {
    parts.insert(parts.end(), more.begin(), more.end());
  };
  append(kept(masks(), sequence - 4, width, 4));
  append(kept(masks(probability, first_sequence + 1), sequence, width));
  EXPECT_EQ(parts, all);
}

}  // namespace

}  // namespace kzero::kernels::dropping
