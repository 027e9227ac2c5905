// Names that keys and values had in earlier versions. A deck may still use a key's former name. A
// former name of a value is refused, with an error that names its successor. Decks inside
// checkpoints are compared by their present names.
#pragma once

#include <string_view>

namespace kzero::deck {

/// Returns the present name of the value `name` of the key with this path. Empty if `name` never
/// was a name, or still is.
std::string_view successor_of(std::string_view path, std::string_view name);

/// Returns the present path of a key; `path` itself unless it is a former path.
std::string_view path_now(std::string_view path);

}  // namespace kzero::deck
