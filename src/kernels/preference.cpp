#include "kernels/preference.hpp"

namespace kzero::kernels {

namespace {

using deck::PreferenceLoss;

/// -ln sigmoid(x), without overflow.
KOKKOS_INLINE_FUNCTION double minus_log_sigmoid(double x) {
  return Kokkos::fmax(-x, 0.0) + Kokkos::log1p(Kokkos::exp(-Kokkos::fabs(x)));
}

KOKKOS_INLINE_FUNCTION double logistic(double x) { return 1 / (1 + Kokkos::exp(-x)); }

/// The logarithm of the odds p / (1 - p) and its derivative, for a mean of ln p. A mean that rounds
/// to 0 in fp32 counts as the largest below 0, so that the odds stay finite.
struct LogOdds {
  double value, derivative;

  KOKKOS_INLINE_FUNCTION explicit LogOdds(double mean) {
    const double below = Kokkos::fmin(mean, -0x1p-24), rest = -Kokkos::expm1(below);
    value = below - Kokkos::log(rest);
    derivative = 1 / rest;
  }
};

/// The loss of a pair, and its derivatives by the sums of ln p of the documents.
struct PairLoss {
  PairSums sums{};
  double by_chosen = 0, by_rejected = 0;

  KOKKOS_INLINE_FUNCTION PairLoss(const PreferenceTerms& terms, const PairRows& pair, double chosen,
                                  double rejected) {
    const double per_chosen = 1.0 / pair.chosen_targets, per_rejected = 1.0 / pair.rejected_targets;
    const double c = chosen - pair.chosen_reference, r = rejected - pair.rejected_reference;
    const double mean_c = c * per_chosen, mean_r = r * per_rejected;
    sums.chosen_reward = terms.beta * c, sums.rejected_reward = terms.beta * r;
    if (terms.loss == PreferenceLoss::dpo) {
      const double x = terms.beta * (c - r);
      sums.loss = (1 - terms.smooth) * minus_log_sigmoid(x) + terms.smooth * minus_log_sigmoid(-x);
      by_chosen = terms.beta * (terms.smooth * logistic(x) - (1 - terms.smooth) * logistic(-x));
      by_rejected = -by_chosen;
    } else if (terms.loss == PreferenceLoss::ipo) {
      const double x = mean_c - mean_r - 1 / (2 * terms.beta);
      sums.loss = x * x;
      by_chosen = 2 * x * per_chosen, by_rejected = -2 * x * per_rejected;
    } else if (terms.loss == PreferenceLoss::simpo) {
      const double x = terms.beta * (mean_c - mean_r) - terms.gamma;
      const double slope = -logistic(-x) * terms.beta;
      sums.loss = minus_log_sigmoid(x);
      by_chosen = slope * per_chosen, by_rejected = -slope * per_rejected;
    } else {
      const LogOdds of_chosen(mean_c), of_rejected(mean_r);
      const double x = of_chosen.value - of_rejected.value, slope = -terms.beta * logistic(-x);
      sums.loss = terms.beta * minus_log_sigmoid(x);
      by_chosen = slope * of_chosen.derivative * per_chosen;
      by_rejected = -slope * of_rejected.derivative * per_rejected;
    }
    if (!has_reference(terms.loss))
      sums.chosen_reward = terms.beta * mean_c, sums.rejected_reward = terms.beta * mean_r;
    sums.loss -= terms.nll * chosen * per_chosen;
    by_chosen -= terms.nll * per_chosen;
    sums.wins = sums.chosen_reward > sums.rejected_reward ? 1 : 0;
  }
};

/// The sum of ln p over a document's rows.
KOKKOS_INLINE_FUNCTION double log_prob(const Vector<const float>& losses, Index begin, Index end) {
  double sum = 0;
  for (Index i = begin; i < end; ++i) sum -= static_cast<double>(losses(i));
  return sum;
}

}  // namespace

void preference_weights(const Execution& exec, const PreferenceTerms& terms,
                        Vector<const float> losses, Vector<const PairRows> pairs,
                        Vector<PairSums> each, Vector<float> weights) {
  const PreferenceTerms of = terms;
  Kokkos::parallel_for(
      "kzero::kernels::preference_weights", tensor::Range(exec, 0, pairs.extent(0)),
      KOKKOS_LAMBDA(Index i) {
        const PairRows& pair = pairs(i);
        const PairLoss loss(of, pair, log_prob(losses, pair.chosen, pair.rejected),
                            log_prob(losses, pair.rejected, pair.end));
        each(i) = loss.sums;
        // A row's loss is minus its ln p.
        for (Index row = pair.chosen; row < pair.end; ++row)
          weights(row) =
              static_cast<float>(row < pair.rejected ? -loss.by_chosen : -loss.by_rejected);
      });
}

void sum_pairs(const Execution& exec, Vector<const PairSums> each, double* loss, double* figures) {
  const Index count = each.extent(0);
  // Uses one work item, because the order of the sums must not depend on the back end.
  Kokkos::parallel_for(
      "kzero::kernels::sum_pairs", tensor::Range(exec, 0, 1), KOKKOS_LAMBDA(Index) {
        PairSums sum;
        for (Index i = 0; i < count; ++i) {
          sum.loss += each(i).loss;
          sum.chosen_reward += each(i).chosen_reward;
          sum.rejected_reward += each(i).rejected_reward;
          sum.wins += each(i).wins;
        }
        *loss = sum.loss;
        figures[0] = sum.chosen_reward, figures[1] = sum.rejected_reward, figures[2] = sum.wins;
      });
}

}  // namespace kzero::kernels
