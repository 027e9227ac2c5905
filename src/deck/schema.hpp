// The table of every key of a deck: path, type, default, unit, range, meaning. Reading, overrides,
// the default deck and the reference in the documentation all come from it, so that each fact
// stands once. Knows nothing of TOML.
#pragma once

#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/types.hpp"
#include "deck/config.hpp"

namespace kzero::deck {

enum class Kind { integer, real, boolean, text, texts, choice, size, duration };

/// The value of a key: Index for integer and size (bytes), double for real and duration (seconds),
/// std::string for text and choice. monostate: anything that no key can hold.
using Value =
    std::variant<std::monostate, bool, Index, double, std::string, std::vector<std::string>>;

enum class End { included, excluded };

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  End low_end = End::included;
  End high_end = End::included;
};

/// A value of another key with which a key means something.
struct Use {
  std::string value;
  Value usual{};  // the key's default then; monostate: its one default
};

struct Key {
  std::string path;  // "model.layers"
  Kind kind;
  std::string unit;  // empty: none
  Range range;
  std::vector<std::string> choices;
  std::string doc;
  std::function<Value(const Config&)> get;
  std::function<void(Config&, const Value&)> set;
  bool defines_model = false;  // decides what the weights compute; recorded in checkpoints
  std::string depends_on{};    // the key, a choice, that says whether this one means something
  std::vector<Use> uses{};     // the values of that key with which it does

  std::string table() const { return path.substr(0, path.rfind('.')); }
  std::string name() const { return path.substr(path.rfind('.') + 1); }
};

/// A list of tables that a deck may have, such as [[data.blend]].
struct TableList {
  std::string path;  // "data.blend"
  std::string doc;
  std::function<Index(const Config&)> size;
  std::function<void(Config&, Index)> resize;
  std::vector<std::vector<Key>> keys;  // of each table that a deck has room for
};

inline constexpr Index most_tables = 100;  // of a list

/// All keys in the order of the deck, grouped by table.
const std::vector<Key>& keys();

/// All lists of tables.
const std::vector<TableList>& table_lists();

/// Finds the list with this path; null if there is none.
const TableList* find_list(std::string_view path);

/// The path of one table of a list, "data.blend[1]"; tables count from 0.
std::string table_path(std::string_view list, Index table);

/// The keys of a deck: keys(), and those of each table that its lists have.
std::vector<const Key*> keys_in(const Config& config);

/// The names of the tables in the order of the deck, without lists.
std::vector<std::string> tables();

/// Finds the key with this path, or with this former one; null if there is none. A key of a list
/// has the number of its table in its path: "data.blend[1].weight".
const Key* find_key(std::string_view path);

/// Converts a value to the type that the key holds ("32MiB" becomes bytes, 1 becomes 1.0, 1e3
/// becomes 1000); monostate if its type is wrong.
Value converted(const Key& key, const Value& value);

/// Returns whether the key allows a converted value.
bool is_allowed(const Key& key, const Value& value);

/// Returns whether the key means something with that value of the key that it depends on; true if
/// it depends on none.
bool has_use(const Key& key, std::string_view value);

/// The use of a key that depends on another, with the other's value in `config`; null if it means
/// nothing there, or depends on none.
const Use* use_in(const Key& key, const Config& config);

/// The allowed values as a phrase: "an integer from 1 to 64".
std::string allowed(const Key& key);

/// Joins texts for a sentence: "a, b or c".
std::string alternatives(const std::vector<std::string>& texts);

/// Formats the value as in a deck; read back, it is the same to the last bit.
std::string as_toml(const Key& key, const Value& value);

/// The known path that `path` was probably meant to be, by another program's name for the key or by
/// a typo; empty if none is near.
std::string nearest_path(std::string_view path);

/// The candidate at the smallest edit distance, if that is at most `limit`; else empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates,
                    std::size_t limit);

}  // namespace kzero::deck
