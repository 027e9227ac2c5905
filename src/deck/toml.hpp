// The TOML parser, toml++, with kzero's settings. Only its headers are used: the sanitizers and
// fuzzers see every line of it, and kzero sets the limit on nesting.
#pragma once

// Some of its assertions fail for text that is not TOML ("[}"), which the code after them reports
// correctly. A debug build would abort there, and in a release build the compiler may assume that
// they hold.
#pragma push_macro("NDEBUG")
#undef NDEBUG
// NOLINTBEGIN(readability-identifier-naming): the library's names
#define TOML_ASSERT(expr) static_cast<void>(0)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
// NOLINTEND(readability-identifier-naming)
#include <toml++/toml.h>
#pragma pop_macro("NDEBUG")

#include <algorithm>

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
