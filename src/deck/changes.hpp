// How two resolved decks differ, such as the deck in a checkpoint and that of the run which resumes
// from it. Does not validate: the older deck may contain keys or values that are no longer allowed.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "deck/config.hpp"

namespace kzero::deck {

/// One text for each key that has different values in the two decks, in the order of the decks:
/// "train.steps is 200, was 100". A key that has a meaning in one of the decks alone, for the value
/// of a key that it depends on, is left out. A text that is not TOML has no keys.
std::vector<std::string> changes(const std::string& before, const std::string& now);

/// One text for each key of a resolved deck, in the order of the deck: "train.steps is 200", and
/// then for each key of its lists of tables: "optimizer.group[0].lr_scale is 0.1".
std::vector<std::string> settings(const std::string& deck);

/// Returns whether the bits of the steps after a restart may change if the key with this path has
/// another value, or the list with this path another number of tables.
bool changes_bits(std::string_view path);

/// The config of a resolved deck, as far as its keys and values are still known and allowed; the
/// others keep their defaults. Lists of tables stay empty, except for train.phase. Nullopt if the
/// text has no known key.
std::optional<Config> recorded(const std::string& deck);

}  // namespace kzero::deck
