// All results of a short training, for bitwise comparison with those of another.
#pragma once

#include <string>
#include <vector>

#include "support/same_bits.hpp"
#include "support/training.hpp"

namespace kzero::tests {

struct Outcome {
  std::vector<double> numbers;
  double validation = 0;
  std::string weights;  // and the other state of this rank's shards
};

/// Runs four steps. Collective over the group.
inline Outcome train_outcome(const deck::Config& config, const grid::Group& group,
                             const Ingredients& given = {}) {
  Training training(config, group, deck::GemmBackend::automatic, given);
  training.engine->initialise({});
  Outcome outcome;
  outcome.numbers = numbers_of(training.run(0, 4));
  outcome.validation = training.engine->validate(1, *training.dataset.training);
  outcome.weights = owned_state(training);
  return outcome;
}

inline void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  EXPECT_TRUE(same_bits(a.numbers, b.numbers)) << what;
  EXPECT_TRUE(same_bits(std::vector{a.validation}, std::vector{b.validation})) << what;
  EXPECT_TRUE(a.weights == b.weights) << "optimizer state, " << what;
}

}  // namespace kzero::tests
