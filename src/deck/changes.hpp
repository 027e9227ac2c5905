// How two resolved decks differ, such as the one in a checkpoint and that of the run which goes on
// from it. Judges neither: the older may hold keys or values that decks have no more.
#pragma once

#include <string>
#include <vector>

namespace kzero::deck {

/// One text for each key that both decks hold with different values, in the order of the decks:
/// "train.steps is 200, was 100". A value that was only renamed is no change. A text that is not
/// TOML has no keys.
std::vector<std::string> changes(const std::string& before, const std::string& now);

/// One text for each key that a resolved deck holds, in the order of the decks: "train.steps is
/// 200". Keys of lists of tables are left out.
std::vector<std::string> settings(const std::string& deck);

}  // namespace kzero::deck
