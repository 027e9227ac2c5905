// Rules between keys, and the values that follow from others. They see the Config alone, not where
// its values came from.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// The use of the deck. train: there must be data.
enum class Purpose { plan, train };

struct Target {
  Index ranks = 0;  // 0: not known; rules that need it are skipped
  Purpose purpose = Purpose::plan;
};

/// A broken rule: the keys involved, the one to change first, and what is wrong.
struct Violation {
  std::vector<std::string> keys;
  std::string text;
};

/// Fills in the values that follow from others (model.feed_forward, grid.data, train.micro_batch)
/// and returns every broken rule. Each value must be in the range of its key.
std::vector<Violation> apply_rules(Config& config, const Target& target);

/// Does the same for a Config without a deck, ranges included; throws Error(usage) with everything
/// that is wrong.
void resolve(Config& config, const Target& target);

}  // namespace kzero::deck
