#include "kernels/routing.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>

#include "support/threads.hpp"
#include "unit/kernels/cases.hpp"
#include "unit/kernels/routing_cases.hpp"

namespace kzero::kernels {

namespace {

/// Logits that are equal or differ by 1/32 and more, so that rounding changes no order.
std::vector<float> drawn_logits(const RoutingCase& c) {
  std::vector<float> logits = numbers<float>(c.rows * c.experts, 7, 3);
  for (float& logit : logits) logit = std::round(logit * 32) / 32;
  return logits;
}

/// A row's scores.
std::vector<double> scores_of(const float* logits, Index experts, bool is_sigmoid) {
  std::vector<double> p(experts);
  if (is_sigmoid) {
    for (Index e = 0; e < experts; ++e) p[e] = 1 / (1 + std::exp(-static_cast<double>(logits[e])));
    return p;
  }
  for (Index e = 0; e < experts; ++e) p[e] = std::exp(static_cast<double>(logits[e]));
  const double total = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& value : p) value /= total;
  return p;
}

/// A bound on the relative error of a score.
double score_error(Index experts) { return 2 * exponential_error(6) + gamma(experts + 8); }

struct Chosen {
  std::vector<std::int32_t> experts;
  std::vector<float> gates;
};

Chosen choices_of(const Execution& exec, const RoutingCase& c, const std::vector<float>& logits,
                  const Scoring& scoring, const std::vector<float>& biases = {}) {
  const Guarded<float> in(logits), gates(c.choices()), bias(biases);
  const Guarded<std::int32_t> experts(c.choices());
  choose_experts<float>(exec, in.matrix(c.rows, c.experts), scoring,
                        biases.empty() ? nullptr : bias.vector().data(),
                        {experts.matrix(c.rows, c.chosen), gates.matrix(c.rows, c.chosen)});
  exec.fence("kzero::tests::chosen");
  return {experts.host(), gates.host()};
}

constexpr Scoring scorings[] = {{false, false}, {false, true}, {true, false}, {true, true}};

/// Biases that are far from every difference of two scores, or none.
std::vector<float> drawn_biases(const RoutingCase& c, bool has_bias) {
  std::vector<float> biases;
  for (Index e = 0; has_bias && e < c.experts; ++e)
    biases.push_back(static_cast<float>((e * 5) % 7 - 3) * 2);
  return biases;
}

TEST(Routing, ChoosesTheExpertsWithTheLargestScores) {
  for (const RoutingCase& c : routing_cases()) {
    const std::vector<float> logits = drawn_logits(c);
    for (const Scoring& scoring : scorings) {
      for (const bool has_bias : {false, true}) {
        const std::vector<float> biases = drawn_biases(c, has_bias);
        const Chosen found = choices_of(Execution(), c, logits, scoring, biases);
        std::vector<std::int32_t> experts;
        std::vector<Bounded> gates;
        for (Index i = 0; i < c.rows; ++i) {
          const float* row = &logits[i * c.experts];
          std::vector<std::int32_t> order(c.experts);
          std::iota(order.begin(), order.end(), 0);
          // Equal biases keep the order of the logits.
          std::ranges::stable_sort(order, std::ranges::greater{}, [&](auto e) {
            return std::pair(has_bias ? biases[e] : 0, row[e]);
          });
          const std::vector<double> p = scores_of(row, c.experts, scoring.is_sigmoid);
          double total = 0;
          for (Index j = 0; j < c.chosen; ++j) total += p[order[j]];
          for (Index j = 0; j < c.chosen; ++j) {
            const double gate = p[order[j]] / (scoring.normalizes ? total : 1);
            experts.push_back(order[j]);
            gates.push_back({gate, (2 * score_error(c.experts) + gamma(c.chosen + 2)) * gate});
          }
        }
        EXPECT_EQ(found.experts, experts) << c.name() << (has_bias ? ", biases" : "");
        expect_close(found.gates, gates, c.name());
      }
    }
  }
}

// The shared expert's logit is in the last column. Its gate changes nothing else.
TEST(Routing, HasAGateOfTheSharedExpert) {
  for (const RoutingCase& c : routing_cases()) {
    const std::vector<float> logits = drawn_logits(c);
    std::vector<float> more;
    std::vector<Bounded> expected;
    const std::vector<float> own = numbers<float>(c.rows, 5, 4);
    for (Index i = 0; i < c.rows; ++i) {
      more.insert(more.end(), logits.begin() + i * c.experts, logits.begin() + (i + 1) * c.experts);
      more.push_back(own[i]);
      const double gate = 1 / (1 + std::exp(-static_cast<double>(own[i])));
      expected.push_back({gate, score_error(1) * gate});
    }
    const Chosen without = choices_of(Execution(), c, logits, {});
    const Guarded<float> in(more), gates(c.choices()), shared(c.rows);
    const Guarded<std::int32_t> experts(c.choices());
    choose_experts<float>(
        Execution(), in.matrix(c.rows, c.experts + 1), {}, nullptr,
        {experts.matrix(c.rows, c.chosen), gates.matrix(c.rows, c.chosen), shared.vector()});
    Kokkos::fence("kzero::tests::chosen");
    EXPECT_EQ(experts.host(), without.experts) << c.name();
    EXPECT_TRUE(tests::same_bits(gates.host(), without.gates)) << c.name();
    expect_close(shared.host(), expected, c.name());
  }
}

TEST(Routing, AddsValuesOfTheHost) {
  std::vector<float> before = numbers<float>(131, 3), values = numbers<float>(131, 4), sums;
  for (std::size_t i = 0; i < before.size(); ++i) sums.push_back(before[i] + values[i]);
  const Guarded<float> to(before);
  add_values(Execution(), values, to.vector().data());
  Kokkos::fence("kzero::tests::added");
  EXPECT_EQ(to.host(), sums);
}

// Equal logits at any two places: vectors of hosts have other instructions for the last experts.
TEST(Routing, OfEqualExpertsTheLowerOneIsFirst) {
  constexpr Index experts = 37;
  for (std::int32_t a = 0; a < experts; ++a) {
    std::vector<float> logits;
    for (Index b = 0; b < experts; ++b) {
      std::vector<float> row = numbers<float>(experts, 3);
      row[a] = row[b] = 1.25F;
      logits.insert(logits.end(), row.begin(), row.end());
    }
    const RoutingCase c{experts, experts, 2};
    const Chosen found = choices_of(Execution(), c, logits, {false, false});
    for (std::int32_t b = 0; b < experts; ++b) {
      EXPECT_EQ(found.experts[2 * b], std::min(a, b));
      if (a == b) continue;
      EXPECT_EQ(found.experts[2 * b + 1], std::max(a, b));
      EXPECT_EQ(found.gates[2 * b], found.gates[2 * b + 1]);
    }
  }
  const RoutingCase all{3, 128, 8};
  const Chosen found = choices_of(Execution(), all, std::vector<float>(3 * 128, -2.5F), {});
  for (Index at = 0; at < all.choices(); ++at) {
    EXPECT_EQ(found.experts[at], at % 8);
    EXPECT_EQ(found.gates[at], 0.125F);
  }
}

TEST(Routing, NumbersThatAreNotFiniteReachTheGates) {
  const RoutingCase c{4, 11, 11};
  std::vector<float> logits = drawn_logits(c);
  logits[1 * 11 + 3] = std::numeric_limits<float>::quiet_NaN();
  logits[2 * 11 + 10] = std::numeric_limits<float>::infinity();
  logits[3 * 11] = std::bit_cast<float>(0xFFFFFFFFU);  // NaN again
  const Chosen found = choices_of(Execution(), c, logits, {});
  for (Index i = 0; i < c.rows; ++i) {
    std::vector<std::int32_t> row(found.experts.begin() + i * 11,
                                  found.experts.begin() + i * 11 + 11);
    std::ranges::sort(row);
    for (std::int32_t e = 0; e < 11; ++e) EXPECT_EQ(row[e], e) << "row " << i;
    const float sum =
        std::accumulate(found.gates.begin() + i * 11, found.gates.begin() + i * 11 + 11, 0.0F);
    EXPECT_EQ(std::isnan(sum), i > 0) << "row " << i;
  }
}

struct Sorted {
  std::vector<std::int32_t> places, choices, begin;

  bool operator==(const Sorted&) const = default;
};

Sorted sorted_choices(const Execution& exec, const RoutingCase& c,
                      const std::vector<std::int32_t>& of) {
  const Guarded<std::int32_t> experts(of), places(c.choices()), begin(c.experts + 1),
      choices(max_sorted_rows(c.rows, c.experts, c.chosen));
  sort_choices(exec, experts.matrix(c.rows, c.chosen),
               {places.matrix(c.rows, c.chosen), choices.vector(), begin.vector()});
  exec.fence("kzero::tests::sorted");
  return {places.host(), choices.host(), begin.host()};
}

Sorted expected_order(const RoutingCase& c, const std::vector<std::int32_t>& of) {
  Sorted s{std::vector<std::int32_t>(of.size()),
           std::vector<std::int32_t>(max_sorted_rows(c.rows, c.experts, c.chosen), -1),
           {}};
  std::int32_t next = 0;
  for (std::int32_t e = 0; e < c.experts; ++e) {
    s.begin.push_back(next);
    for (std::int32_t choice = 0; choice < c.choices(); ++choice) {
      if (of[choice] != e) continue;
      s.places[choice] = next;
      s.choices[next++] = choice;
    }
    next = (next + 31) / 32 * 32;
  }
  s.begin.push_back(next);
  return s;
}

TEST(Routing, SortsByExpertAndRow) {
  for (const RoutingCase& c : routing_cases()) {
    for (const auto& [what, of] : drawn_choices(c)) {
      EXPECT_EQ(sorted_choices(Execution(), c, of), expected_order(c, of))
          << c.name() << ", " << what;
    }
  }
}

TEST(Routing, MaxSortedRowsIsReachedButNeverExceeded) {
  EXPECT_EQ(max_sorted_rows(1, 1, 1), 32);
  EXPECT_EQ(max_sorted_rows(1, 128, 8), 8 * 32);
  EXPECT_EQ(max_sorted_rows(33, 1, 1), 64);
  EXPECT_EQ(max_sorted_rows(256, 8, 1), 256 + 7 * 32);  // 8 experts cannot each need a block more
  const RoutingCase c{8, 8, 1};
  EXPECT_EQ(sorted_choices(Execution(), c, {0, 1, 2, 3, 4, 5, 6, 7}).begin.back(),
            max_sorted_rows(8, 8, 1));
  for (const RoutingCase& each : routing_cases()) {
    for (const auto& [what, of] : drawn_choices(each)) {
      EXPECT_LE(expected_order(each, of).begin.back(),
                max_sorted_rows(each.rows, each.experts, each.chosen))
          << each.name() << ", " << what;
    }
  }
}

std::vector<std::int32_t> counts_of(const Execution& exec, const RoutingCase& c,
                                    const std::vector<std::int32_t>& of, const PackedRows& packed) {
  const Guarded<std::int32_t> experts(of), tally(c.experts);
  count_choices(exec, experts.matrix(c.rows, c.chosen), packed.counted(), tally.vector());
  exec.fence("kzero::tests::counted");
  return tally.host();
}

std::vector<std::int32_t> expected_counts(const RoutingCase& c, const std::vector<std::int32_t>& of,
                                          const PackedRows& packed) {
  std::vector<std::int32_t> tally(c.experts);
  for (Index i = 0; i < c.rows; ++i) {
    for (Index j = 0; packed.counts(i) && j < c.chosen; ++j) ++tally[of[i * c.chosen + j]];
  }
  return tally;
}

TEST(Routing, CountsAllRowsButPadding) {
  for (const RoutingCase& c : routing_cases()) {
    for (const Packing packing : {Packing::none, Packing::documents, Packing::all_padding}) {
      const PackedRows packed(c.rows, packing);
      for (const auto& [what, of] : drawn_choices(c)) {
        EXPECT_EQ(counts_of(Execution(), c, of, packed), expected_counts(c, of, packed))
            << c.name() << ", " << what;
      }
    }
  }
}

TEST(Routing, AddsCountsToSums) {
  const Guarded<std::int32_t> tally(std::vector<std::int32_t>{0, 7, 2147483647});
  const std::vector<std::int64_t> before{5, -9, 4294967296};
  const Guarded<std::int64_t> sums(before);
  const Guarded<std::uint64_t> words(std::vector<std::uint64_t>{5, 1, 4294967296});
  add_counts<std::int64_t>(Execution(), tally.vector(), sums.vector());
  add_counts<std::uint64_t>(Execution(), tally.vector(), words.vector());
  Kokkos::fence("kzero::tests::added");
  EXPECT_EQ(sums.host(), (std::vector<std::int64_t>{5, -2, 6442450943}));
  EXPECT_EQ(words.host(), (std::vector<std::uint64_t>{5, 8, 6442450943}));
}

/// The inputs of router_backward.
struct RouterCase {
  RoutingCase c;
  Scoring scoring;
  RouterLosses losses;
  Packing packing;
};

std::vector<RouterCase> router_cases() {
  std::vector<RouterCase> cases;
  for (const RoutingCase& c : routing_cases()) {
    if (c.rows > 100) continue;
    for (const Scoring& scoring : scorings) {
      if (scoring.is_sigmoid) {
        cases.push_back({c, scoring, {}, Packing::documents});
        continue;
      }
      cases.push_back({c, scoring, {3.0F, 5.0F}, Packing::none});
      if (c.experts > 100) continue;  // as the differences take long
      cases.push_back({c, scoring, {}, Packing::none});
      cases.push_back({c, scoring, {3.0F, 0}, Packing::documents});
      cases.push_back({c, scoring, {0, 5.0F}, Packing::documents});
      cases.push_back({c, scoring, {3.0F, 5.0F}, Packing::all_padding});
    }
  }
  return cases;
}

/// The loss of one row, whose choices and counts are given, in double.
class RowLoss {
 public:
  RowLoss(const RouterCase& of, const Chosen& chosen, const std::vector<std::int32_t>& tally,
          const std::vector<float>& dgates, bool row_counts, Index i)
      : case_(of),
        counts_(tally),
        experts_(&chosen.experts[i * of.c.chosen]),
        dgates_(&dgates[i * of.c.chosen]),
        row_counts_(row_counts),
        rows_(std::accumulate(tally.begin(), tally.end(), 0.0) / static_cast<double>(of.c.chosen)) {
  }

  double operator()(const std::vector<double>& logits) const {
    std::vector<double> powers;
    for (const double logit : logits) powers.push_back(std::exp(logit));
    const double z = std::accumulate(powers.begin(), powers.end(), 0.0);
    const bool is_sigmoid = case_.scoring.is_sigmoid;
    const auto score = [&](Index j) {
      const double power = powers[experts_[j]];
      return power / (is_sigmoid ? 1 + power : z);
    };
    double total = 0, chosen = 0, balance = 0;
    for (Index j = 0; j < case_.c.chosen; ++j) chosen += score(j);
    for (Index j = 0; j < case_.c.chosen; ++j)
      total += dgates_[j] * score(j) / (case_.scoring.normalizes ? chosen : 1);
    if (is_sigmoid || !row_counts_) return total;
    for (Index e = 0; e < case_.c.experts; ++e)
      balance += counts_[e] / (rows_ * static_cast<double>(case_.c.chosen)) * powers[e] / z;
    total += case_.losses.balance * static_cast<double>(case_.c.experts) * balance / rows_;
    return total + case_.losses.z * std::log(z) * std::log(z) / rows_;
  }

  /// Bounds the magnitude of any term of the loss or of its gradient.
  double size() const {
    double sum = 0;
    for (Index j = 0; j < case_.c.chosen; ++j) sum += std::abs(dgates_[j]);
    if (!row_counts_) return sum;
    const double most = *std::ranges::max_element(counts_);
    return sum +
           2 * case_.losses.balance * static_cast<double>(case_.c.experts) * most /
               (rows_ * rows_ * static_cast<double>(case_.c.chosen)) +
           20 * case_.losses.z / rows_;
  }

 private:
  const RouterCase& case_;
  const std::vector<std::int32_t>& counts_;
  const std::int32_t* experts_;
  const float* dgates_;
  bool row_counts_;
  double rows_;
};

template <class T>
std::vector<T> gradient_of(const Execution& exec, const RouterCase& of,
                           const std::vector<float>& logits, const Chosen& chosen,
                           const std::vector<float>& dgates, const PackedRows& packed) {
  const RoutingCase& c = of.c;
  const Guarded<float> in(logits), gates(chosen.gates), d(dgates);
  const Guarded<std::int32_t> experts(chosen.experts),
      tally(expected_counts(c, chosen.experts, packed));
  const Guarded<T> dlogits(c.rows * c.experts);
  router_backward<T>(exec, in.matrix(c.rows, c.experts),
                     {experts.matrix(c.rows, c.chosen), gates.matrix(c.rows, c.chosen)},
                     d.matrix(c.rows, c.chosen), {}, of.scoring, packed.counted(), tally.vector(),
                     of.losses, dlogits.matrix(c.rows, c.experts));
  exec.fence("kzero::tests::gradient");
  return dlogits.host();
}

template <class T>
class RouterGradient : public testing::Test {};
TYPED_TEST_SUITE(RouterGradient, Elements, );

TYPED_TEST(RouterGradient, MatchesDifferencesOfTheLoss) {
  using T = TypeParam;
  constexpr double step = 1e-4;
  for (const RouterCase& of : router_cases()) {
    const RoutingCase& c = of.c;
    const PackedRows packed(c.rows, of.packing);
    const std::vector<float> logits = drawn_logits(c), dgates = numbers<float>(c.choices(), 9);
    const Chosen chosen = choices_of(Execution(), c, logits, of.scoring);
    const std::vector<std::int32_t> tally = expected_counts(c, chosen.experts, packed);
    std::vector<Bounded> expected;
    for (Index i = 0; i < c.rows; ++i) {
      const RowLoss loss(of, chosen, tally, dgates, packed.counts(i), i);
      std::vector<double> row(logits.begin() + i * c.experts, logits.begin() + (i + 1) * c.experts);
      for (double& logit : row) {
        const double at = logit;
        logit = at + step;
        const double above = loss(row);
        logit = at - step;
        const double below = loss(row);
        logit = at;
        const double error = 4 * score_error(c.experts) + gamma(4 * c.experts + 60) + 1e-8;
        expected.push_back(stored<T>((above - below) / (2 * step), error * loss.size()));
      }
    }
    expect_close(gradient_of<T>(Execution(), of, logits, chosen, dgates, packed), expected,
                 c.name() + ", losses " + std::to_string(of.losses.balance) + " and " +
                     std::to_string(of.losses.z));
  }
}

// dl = d s (1 - s) for a gate s, and all other columns as without it.
TEST(Routing, HasTheGradientOfTheSharedExpertsLogit) {
  const RoutingCase c{33, 11, 3};
  const RouterCase of{c, {}, {3.0F, 5.0F}, Packing::none};
  const PackedRows packed(c.rows, of.packing);
  const std::vector<float> logits = drawn_logits(c), dgates = numbers<float>(c.choices(), 9),
                           gates = numbers<float>(c.rows, 4), own = numbers<float>(c.rows, 6);
  std::vector<float> more;
  for (Index i = 0; i < c.rows; ++i) {
    more.insert(more.end(), logits.begin() + i * c.experts, logits.begin() + (i + 1) * c.experts);
    more.push_back(77);
  }
  const Chosen chosen = choices_of(Execution(), c, logits, {});
  const std::vector<float> without =
      gradient_of<float>(Execution(), of, logits, chosen, dgates, packed);
  const Guarded<float> in(more), chosen_gates(chosen.gates), d(dgates), shared(gates), dshared(own);
  const Guarded<std::int32_t> experts(chosen.experts),
      tally(expected_counts(c, chosen.experts, packed));
  const Guarded<float> dlogits(c.rows * (c.experts + 1));
  router_backward<float>(
      Execution(), in.matrix(c.rows, c.experts + 1),
      {experts.matrix(c.rows, c.chosen), chosen_gates.matrix(c.rows, c.chosen), shared.vector()},
      d.matrix(c.rows, c.chosen), dshared.vector(), of.scoring, packed.counted(), tally.vector(),
      of.losses, dlogits.matrix(c.rows, c.experts + 1));
  Kokkos::fence("kzero::tests::gradient");
  const std::vector<float> found = dlogits.host();
  for (Index i = 0; i < c.rows; ++i) {
    for (Index e = 0; e < c.experts; ++e)
      EXPECT_EQ(found[i * (c.experts + 1) + e], without[i * c.experts + e]);
    EXPECT_EQ(found[i * (c.experts + 1) + c.experts], own[i] * gates[i] * (1 - gates[i]));
  }
}

TEST(Routing, BitsDoNotDependOnTheNumberOfThreads) {
  const RoutingCase c{257, 60, 4};
  const RouterCase of{c, {}, {3.0F, 5.0F}, Packing::documents};
  const PackedRows packed(c.rows, of.packing);
  const std::vector<float> logits = numbers<float>(c.rows * c.experts, 7, 3),
                           dgates = numbers<float>(c.choices(), 9);
  const auto execs = tests::thread_counts();
  const Chosen first = choices_of(execs.front(), c, logits, {});
  const std::vector<float> gradient =
      gradient_of<float>(execs.front(), of, logits, first, dgates, packed);
  for (const Execution& exec : execs) {
    const Chosen found = choices_of(exec, c, logits, {});
    EXPECT_EQ(found.experts, first.experts);
    EXPECT_TRUE(tests::same_bits(found.gates, first.gates));
    EXPECT_EQ(sorted_choices(exec, c, found.experts), expected_order(c, found.experts));
    EXPECT_EQ(counts_of(exec, c, found.experts, packed), expected_counts(c, found.experts, packed));
    EXPECT_TRUE(
        tests::same_bits(gradient_of<float>(exec, of, logits, found, dgates, packed), gradient));
  }
}

}  // namespace

}  // namespace kzero::kernels
