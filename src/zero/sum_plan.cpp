#include "zero/sum_plan.hpp"

#include <algorithm>
#include <bit>

namespace kzero::zero {

namespace {

/// Returns whether aligned ranges of `terms` terms are subtrees of a sum with blocks of `block`.
bool are_subtrees(Index terms, Index block) {
  return terms % block == 0 && std::has_single_bit(static_cast<std::uint64_t>(terms / block));
}

/// The most sums that are open after one of the rounds but the last, with `each` terms in a round.
int max_open(Index rounds, Index each, Index block) {
  int largest = 0;
  for (Index round = 1; round < rounds; ++round)
    largest = std::max(largest, kernels::open_sums(round * each, block));
  return largest;
}

}  // namespace

SumPlan::SumPlan(const SumShape& shape, KeepsSums keeps)
    : shape_(shape),
      keeps_(keeps),
      block_(ceil_div(shape.by_library ? rounds() : shape.terms, shape.blocks)) {
  if (shape.nodes == 1 || shape.by_library || shape.own > 1) return;
  const bool is_whole =
      shape.terms % shape.ranks == 0 && (shape.ranks / shape.nodes) % shape.sequence == 0;
  if (keeps == KeepsSums::nodes && rounds() > 1 && is_whole &&
      are_subtrees(node_ranks() * rounds(), block_)) {
    route_ = Route::step;
  } else if (node_ranks() > 1 && are_subtrees(node_ranks(), block_)) {
    route_ = Route::rounds;
  }
}

kernels::Terms SumPlan::node_terms(Index round) const {
  if (route_ == Route::rounds) return {0, block_, true};
  return {round * node_ranks(), block_, round + 1 == rounds()};
}

Index SumPlan::node_count(Index node, Index round) const {
  return std::clamp<Index>(terms_in(round) - node * node_ranks(), 0, node_ranks());
}

kernels::Terms SumPlan::owner_terms(Index round) const {
  if (route_ == Route::step) return {};
  const bool is_last = round + 1 == rounds();
  if (route_ == Route::rounds) return {round * nodes(), 1, is_last};
  return {round * terms_of_round(), block_, is_last};
}

Index SumPlan::owner_count(Index round) const {
  if (route_ == Route::terms) return terms_in(round);
  return ceil_div(terms_in(round), node_ranks());
}

int SumPlan::node_open() const {
  return route_ == Route::step ? max_open(rounds(), node_ranks(), block_) : 0;
}

int SumPlan::owner_open() const {
  if (route_ == Route::step) return 0;
  return route_ == Route::rounds ? max_open(rounds(), nodes(), 1)
                                 : max_open(rounds(), terms_of_round(), block_);
}

}  // namespace kzero::zero
