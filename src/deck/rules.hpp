// Rules between keys, and the values that are derived from others. They see only the Config, not
// where its values came from.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// The use of the deck. train: data is required.
enum class Purpose { plan, train };

struct Target {
  Index ranks = 0;  // 0: unknown; rules that need it are skipped
  Purpose purpose = Purpose::plan;
  /// Lists the parameters of the deck's model, whose values the rules have filled in. Rules that
  /// need names are skipped without it.
  std::function<std::vector<std::string>(const Config&)> parameter_names{};
};

/// A broken rule: the keys involved, beginning with the one to change, and what is wrong.
struct Violation {
  std::vector<std::string> keys;
  std::string text;
};

/// Fills in the values that are derived from others (model.feed_forward, grid.data,
/// train.micro_batch) and returns every broken rule. Each value must be in the range of its key.
std::vector<Violation> apply_rules(Config& config, const Target& target);

/// Does the same for a Config without a deck, and checks ranges too. Throws Error(usage) that lists
/// every problem.
void resolve(Config& config, const Target& target);

/// One text for each group: why no parameter belongs to it, or nothing if one does.
std::vector<std::string> empty_groups(const std::vector<OptimizerGroup>& groups,
                                      const std::vector<std::string>& parameters);

}  // namespace kzero::deck
