// Losses of preferences over pairs of documents, a chosen and a rejected answer: DPO (Rafailov et
// al., arXiv 2305.18290) with label smoothing, IPO (Azar et al., arXiv 2310.12036), SimPO (Meng et
// al., arXiv 2405.14734) and ORPO (Hong et al., arXiv 2403.07691). A loss depends on the sum of ln
// p of each document's targets. The kernels sum in a fixed order in fp64.
#pragma once

#include <cstdint>

#include "deck/config.hpp"
#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Execution;
using tensor::Vector;

/// A pair among the rows of a micro-batch: the chosen document has rows [chosen, rejected), the
/// rejected one [rejected, end). `targets` are their numbers of targets, at least one each.
/// `reference` are the sums of ln p under the reference model, if the loss has one.
struct PairRows {
  std::int32_t chosen = 0, rejected = 0, end = 0;
  std::int32_t chosen_targets = 1, rejected_targets = 1;
  double chosen_reference = 0, rejected_reference = 0;
};

/// What a pair adds to the sums of a step. A reward is beta (s - r), where s is the sum of ln p and
/// r that of the reference; with "simpo" and "orpo" it is beta s / n.
struct PairSums {
  double loss = 0;
  double chosen_reward = 0, rejected_reward = 0;
  double wins = 0;  // 1 if the chosen document has the larger reward
};

/// The terms of the loss of a pair, as of deck::Preference.
struct PreferenceTerms {
  deck::PreferenceLoss loss = deck::PreferenceLoss::dpo;
  double beta = 0.1, smooth = 0, gamma = 0, nll = 0;
};

/// From the losses [N] of a micro-batch's rows, -ln p of the targets and 0 elsewhere, computes what
/// each pair adds, each [pairs], and the derivative of the pairs' losses by each loss of their
/// rows, weights [N]. Leaves the weights of other rows.
void preference_weights(const Execution& exec, const PreferenceTerms& terms,
                        Vector<const float> losses, Vector<const PairRows> pairs,
                        Vector<PairSums> each, Vector<float> weights);

/// The sums of a micro-batch's pairs in addition to that of their losses: of the chosen rewards,
/// the rejected rewards and the wins.
inline constexpr Index pair_figures = 3;

/// Sets *loss and figures [pair_figures] to the sums over the pairs, added in order.
void sum_pairs(const Execution& exec, Vector<const PairSums> each, double* loss, double* figures);

}  // namespace kzero::kernels
