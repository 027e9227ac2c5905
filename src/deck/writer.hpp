// Writes decks as text from the key table: the complete deck of a run, the annotated default deck,
// and the reference page.
#pragma once

#include <string>

#include "deck/config.hpp"

namespace kzero::deck {

/// Writes a complete deck, every key in order. Reading it back gives the same Config, bit for bit.
std::string resolved(const Config& config);

/// Writes the default deck, with each key's meaning, type, unit and range as comments.
std::string annotated_defaults();

/// Writes the deck's reference page, docs/deck.md.
std::string reference_markdown();

}  // namespace kzero::deck
