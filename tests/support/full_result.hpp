// All results of a training on some ranks, for bitwise comparison with one on others.
#pragma once

#include <optional>

#include "support/full_state.hpp"
#include "support/same_bits.hpp"

namespace kzero::tests {

struct FullResult {
  std::vector<double> numbers;
  FullState state;
};

/// Runs steps from the initial weights, and a validation of two batches. Collective over `group`,
/// the training's ranks.
inline FullResult full_result(Training& training, const grid::Group& group, Index steps) {
  training.engine->initialise({});
  FullResult result{numbers_of(training.run(0, steps)), {}};
  result.numbers.push_back(training.engine->validate(2, *training.dataset.training));
  result.state = full_state(training.engine->owned_shards(), group);
  return result;
}

/// full_result() of the deck on the first `ranks` of the launch, and then check(training). Returns
/// nothing on other ranks. Collective over the launch.
template <class Check>
std::optional<FullResult> checked_result_on(const deck::Config& config, int ranks, Index steps,
                                            const Check& check) {
  const grid::Group group = first_ranks(ranks);
  if (!is_among_first(ranks)) return std::nullopt;
  Training training(config, group);
  FullResult result = full_result(training, group, steps);
  check(training);
  return result;
}

/// The same of a training that must take the planned bytes; `what` names it if not.
inline std::optional<FullResult> planned_result_on(const deck::Config& config, int ranks,
                                                   const std::string& what, Index steps = 4) {
  return checked_result_on(config, ranks, steps,
                           [&](const Training& training) { expect_planned_bytes(training, what); });
}

/// The same of a training that must also send the expected traffic.
inline std::optional<FullResult> counted_result_on(const deck::Config& config, int ranks,
                                                   const std::string& what) {
  constexpr Index steps = 3;
  return checked_result_on(config, ranks, steps, [&](const Training& training) {
    expect_planned_bytes(training, what);
    expect_planned_traffic(training, what);
  });
}

/// Only the root has the full state. The results of other ranks are empty.
inline void expect_same(const std::optional<FullResult>& found,
                        const std::optional<FullResult>& expected, const std::string& what) {
  if (!found || !expected) return;  // the root is always among the first ranks
  EXPECT_TRUE(same_bits(found->numbers, expected->numbers)) << what;
  EXPECT_TRUE(same_bits(found->state, expected->state)) << "state, " << what;
}

}  // namespace kzero::tests
