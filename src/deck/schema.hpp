// The table of every key of a deck: path, type, default, unit, range, meaning. Reading, overrides,
// the default deck and the reference in the documentation are all derived from it, so that each
// fact is written once. Independent of TOML.
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
/// std::string for text and choice. monostate: a value of no key's type.
using Value =
    std::variant<std::monostate, bool, Index, double, std::string, std::vector<std::string>>;

enum class End { included, excluded };

struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  End low_end = End::included;
  End high_end = End::included;
};

/// A value of another key for which a key has a meaning.
struct Use {
  std::string value;
  Value default_value{};  // the key's default then; monostate: its one default
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
  bool defines_model = false;  // defines what the weights compute; recorded in checkpoints
  std::string depends_on{};    // the choice key that decides whether this one has a meaning
  std::vector<Use> uses{};     // the values of that key for which it has
  bool changes_bits = true;    // another value changes bits of the steps after a restart

  std::string table() const { return path.substr(0, path.rfind('.')); }
  std::string name() const { return path.substr(path.rfind('.') + 1); }
};

/// A list of tables that a deck may have, such as [[data.blend]].
struct TableList {
  std::string path;  // "data.blend"
  std::string doc;
  std::function<Index(const Config&)> size;
  std::function<void(Config&, Index)> resize;
  std::vector<std::vector<Key>> keys;  // keys of each table that a deck may have
};

inline constexpr Index max_tables = 100;  // per list

/// All keys in the order of the deck, grouped by table.
const std::vector<Key>& keys();

/// All lists of tables.
const std::vector<TableList>& table_lists();

/// Finds the list with this path; null if there is none.
const TableList* find_list(std::string_view path);

/// The path of one table of a list, "data.blend[1]"; tables count from 0.
std::string table_path(std::string_view list, Index table);

/// The keys of a deck: keys(), and those of each table in its lists.
std::vector<const Key*> keys_in(const Config& config);

/// The names of the tables in the order of the deck, without lists.
std::vector<std::string> tables();

/// Finds the key with this path; null if there is none. A key of a list has the number of its table
/// in its path: "data.blend[1].weight".
const Key* find_key(std::string_view path);

/// Converts a value to the key's type ("32MiB" becomes bytes, 1 becomes 1.0, 1e3 becomes 1000);
/// monostate if this is not possible.
Value converted(const Key& key, const Value& value);

/// Returns whether a converted value is in the key's range.
bool is_allowed(const Key& key, const Value& value);

/// Returns whether the key has a meaning if the key that it depends on has that value. True if it
/// depends on none.
bool has_use(const Key& key, std::string_view value);

/// The use of a key that depends on another, for the other's value in `config`. Null if it has no
/// meaning there, or depends on none.
const Use* use_in(const Key& key, const Config& config);

/// The allowed values as a phrase: "an integer from 1 to 64".
std::string allowed(const Key& key);

/// The allowed values next to a default: "1 to 64 ranks", or the other choices. Empty for booleans
/// and texts, whose default shows the type.
std::string allowed_briefly(const Key& key);

/// Joins texts for a sentence: "a, b or c".
std::string alternatives(const std::vector<std::string>& texts);

/// Formats the value as in a deck. Reading it back gives the same bits.
std::string as_toml(const Key& key, const Value& value);

/// The known path that was probably meant: `path` may be another program's name for the key, or a
/// typo. Empty if none is near.
std::string nearest_path(std::string_view path);

/// The candidate at the smallest edit distance, if that is at most `limit`; otherwise empty.
std::string nearest(std::string_view word, const std::vector<std::string>& candidates,
                    std::size_t limit);

// Names that other training programs (nanoGPT, Hugging Face, Megatron-LM, DeepSpeed) use for the
// keys of a deck. They are used only in error messages; a deck accepts only its own names.

/// The path of the key that other programs call `name`, ignoring case and with '-' equal to '_'.
/// Empty if there is none. kzero's own paths are not such names.
std::string_view path_of_common_name(std::string_view name);

}  // namespace kzero::deck
