// Writes a Config as text: the complete deck of a run, the annotated default deck and the reference
// page, all from the key table.
#pragma once

#include <string>

#include "deck/config.hpp"

namespace kzero::deck {

/// Writes a complete deck, every key in order. Reading it back gives the same Config bits.
std::string resolved(const Config& config);

/// Writes the default deck, with each key's meaning, type, unit and range as comments.
std::string annotated_defaults();

/// Writes the deck's reference page, docs/deck.md.
std::string reference_markdown();

}  // namespace kzero::deck
