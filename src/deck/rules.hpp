// What keys must be to one another, and the values that follow from others. Knows the Config alone,
// not where its values came from.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// What the deck is to be used for. train: there must be data.
enum class Purpose { plan, train };

struct Target {
  Index ranks = 0;  // 0: not known; rules that need it are left out
  Purpose purpose = Purpose::plan;
};

/// A broken rule: the keys that it is about, the one to change first, and what is wrong.
struct Violation {
  std::vector<std::string> keys;
  std::string text;
};

/// Fills in what follows from other values (model.feed_forward, grid.data, train.micro_batch) and
/// returns every broken rule. Each value must be in the range of its key.
std::vector<Violation> apply_rules(Config& config, const Target& target);

/// The same for a Config that no deck was read for, ranges included; throws Error(usage) with all
/// that is wrong.
void resolve(Config& config, const Target& target);

}  // namespace kzero::deck
