// Start positions, in the text, of what the TOML parser read.
#pragma once

#include <algorithm>

#include "deck/toml.hpp"

namespace kzero::deck {

/// Returns where `node` starts with its name: the '[' of a table's own line, otherwise the key.
inline toml::source_position start_of(const toml::key& key, const toml::node& node) {
  // A table of dotted keys starts where its key does. A list of tables starts at its first '['.
  const toml::table* table = node.as_table();
  const bool has_line = table != nullptr && !table->is_inline();
  const auto begin = node.source().begin;
  return has_line ? begin : std::min(begin, key.source().begin);
}

}  // namespace kzero::deck
