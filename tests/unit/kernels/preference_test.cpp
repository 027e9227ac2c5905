#include "kernels/preference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "unit/kernels/cases.hpp"

namespace kzero::kernels {

namespace {

using deck::PreferenceLoss;

const PreferenceTerms all_terms[] = {
    {.loss = PreferenceLoss::dpo, .beta = 0.3},
    {.loss = PreferenceLoss::dpo, .beta = 0.3, .smooth = 0.2, .nll = 0.7},
    {.loss = PreferenceLoss::ipo, .beta = 0.2},
    {.loss = PreferenceLoss::simpo, .beta = 2, .gamma = 0.5, .nll = 0.1},
    {.loss = PreferenceLoss::orpo, .beta = 0.4, .nll = 1},
};

/// Three pairs with rows between them that belong to none. Rows 3, 8 and so on have no target.
struct Pairs {
  std::vector<PairRows> pairs{
      {0, 4, 9, 3, 4, -3.0, -6.5}, {9, 11, 13, 1, 1, -2.5, -0.75}, {15, 19, 22, 2, 1, -5.0, -9.0}};
  std::vector<float> losses{0.5F, 1.25F, 2, 0, 3,    0.25F, 1.5F, 2.5F,  0, 0.75F, 0, 2,
                            0,    9,     9, 0, 1.5F, 3.5F,  0,    0.25F, 0, 0,     9, 0.1F};

  double sum(Index begin, Index end) const {
    double sum = 0;
    for (Index i = begin; i < end; ++i) sum -= static_cast<double>(losses[i]);
    return sum;
  }
};

double minus_log_sigmoid(double x) { return std::log1p(std::exp(-x)); }
double log_odds(double mean) { return mean - std::log1p(-std::exp(mean)); }

/// The loss by its definition.
double defined(const PreferenceTerms& t, const PairRows& p, double c, double r) {
  const double nc = p.chosen_targets, nr = p.rejected_targets;
  const double dc = c - p.chosen_reference, dr = r - p.rejected_reference;
  const double nll = -t.nll * c / nc;
  switch (t.loss) {
    case PreferenceLoss::dpo:
      return nll + (1 - t.smooth) * minus_log_sigmoid(t.beta * (dc - dr)) +
             t.smooth * minus_log_sigmoid(t.beta * (dr - dc));
    case PreferenceLoss::ipo:
      return nll + std::pow(dc / nc - dr / nr - 1 / (2 * t.beta), 2);
    case PreferenceLoss::simpo:
      return nll + minus_log_sigmoid(t.beta * (c / nc - r / nr) - t.gamma);
    default:
      return nll + t.beta * minus_log_sigmoid(log_odds(c / nc) - log_odds(r / nr));
  }
}

struct Found {
  std::vector<PairSums> each;
  std::vector<float> weights;
  double loss;
  std::vector<double> figures;
};

Found computed(const PreferenceTerms& terms, Pairs in) {
  if (!has_reference(terms.loss)) {
    for (PairRows& pair : in.pairs) pair.chosen_reference = pair.rejected_reference = 0;
  }
  const Guarded<float> losses(in.losses);
  const Guarded<PairRows> pairs(in.pairs);
  const Guarded<PairSums> each(std::ssize(in.pairs));
  const Guarded<float> weights(std::vector<float>(in.losses.size(), 77));
  const Guarded<double> sums(1 + pair_figures);
  preference_weights(Execution(), terms, losses.vector(), pairs.vector(), each.vector(),
                     weights.vector());
  sum_pairs(Execution(), each.vector(), sums.data(), sums.data() + 1);
  const auto all = sums.host();
  return {each.host(), weights.host(), all[0], {all.begin() + 1, all.end()}};
}

TEST(Preference, LossesAndRewardsAreThoseOfTheDefinition) {
  for (const PreferenceTerms& t : all_terms) {
    const Pairs in;
    const Found found = computed(t, in);
    double loss = 0, chosen = 0, rejected = 0, wins = 0;
    for (std::size_t i = 0; i < in.pairs.size(); ++i) {
      SCOPED_TRACE(std::string(name_of(t.loss)) + " " + std::to_string(i));
      const PairRows& p = in.pairs[i];
      const double c = in.sum(p.chosen, p.rejected), r = in.sum(p.rejected, p.end);
      EXPECT_NEAR(found.each[i].loss, defined(t, p, c, r), 1e-13);
      const bool refers = has_reference(t.loss);
      const double rc = t.beta * (refers ? c - p.chosen_reference : c / p.chosen_targets);
      const double rr = t.beta * (refers ? r - p.rejected_reference : r / p.rejected_targets);
      EXPECT_NEAR(found.each[i].chosen_reward, rc, 1e-13);
      EXPECT_NEAR(found.each[i].rejected_reward, rr, 1e-13);
      EXPECT_EQ(found.each[i].wins, rc > rr ? 1 : 0);
      loss += found.each[i].loss, chosen += rc, rejected += rr, wins += rc > rr ? 1 : 0;
    }
    EXPECT_EQ(found.loss, loss);
    EXPECT_NEAR(found.figures[0], chosen, 1e-13);
    EXPECT_NEAR(found.figures[1], rejected, 1e-13);
    EXPECT_EQ(found.figures[2], wins);
    EXPECT_TRUE(wins > 0 && wins < 3) << "the pairs differ";
  }
}

/// Against a central difference of the loss by each row.
TEST(Preference, WeightsAreDerivatives) {
  for (const PreferenceTerms& t : all_terms) {
    const Pairs in;
    const Found found = computed(t, in);
    std::vector<bool> is_in_pair(in.losses.size());
    for (const PairRows& p : in.pairs) {
      const double c = in.sum(p.chosen, p.rejected), r = in.sum(p.rejected, p.end), h = 1e-5;
      for (Index row = p.chosen; row < p.end; ++row) {
        SCOPED_TRACE(std::string(name_of(t.loss)) + " row " + std::to_string(row));
        is_in_pair[row] = true;
        const double dc = row < p.rejected ? -h : 0, dr = row < p.rejected ? 0 : -h;
        const double by_loss =
            (defined(t, p, c + dc, r + dr) - defined(t, p, c - dc, r - dr)) / (2 * h);
        EXPECT_NEAR(static_cast<double>(found.weights[row]), by_loss, 1e-6);
      }
    }
    for (std::size_t row = 0; row < is_in_pair.size(); ++row) {
      if (is_in_pair[row]) continue;
      EXPECT_EQ(found.weights[row], 77) << row;
    }
  }
}

TEST(Preference, NoPairsSumToZero) {
  const Guarded<double> sums(std::vector<double>(1 + pair_figures, 5));
  sum_pairs(Execution(), {}, sums.data(), sums.data() + 1);
  EXPECT_EQ(sums.host(), std::vector<double>(1 + pair_figures, 0));
}

/// Answers whose probabilities round to 1, and differences beyond the range of exp.
TEST(Preference, ExtremesStayFinite) {
  for (const PreferenceTerms& t : all_terms) {
    for (const float loss : {0.0F, 1e5F}) {
      Pairs in;
      for (Index row = 0; row < 4; ++row) in.losses[row] = loss;
      const Found found = computed(t, in);
      EXPECT_TRUE(std::isfinite(found.loss)) << name_of(t.loss) << loss;
      for (const float weight : found.weights)
        EXPECT_TRUE(std::isfinite(weight)) << name_of(t.loss) << loss;
    }
  }
}

}  // namespace

}  // namespace kzero::kernels
