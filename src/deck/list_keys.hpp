// Finds keys of the lists of tables; part of find_key().
#pragma once

#include <string_view>

#include "deck/schema.hpp"

namespace kzero::deck {

/// Finds the key of a list's table, such as "data.blend[1].weight"; null if there is none.
const Key* find_list_key(std::string_view path);

}  // namespace kzero::deck
