// Turns a deck and command-line overrides into a Config that is complete and valid, or into one
// error that lists everything wrong with them, each with its location.
#pragma once

#include <string>
#include <vector>

#include "deck/config.hpp"
#include "deck/document.hpp"
#include "deck/rules.hpp"

namespace kzero::deck {

/// Reads the deck, then the overrides ("train.steps=100", "train.precision=bf16",
/// "data.files=a.txt,b.txt"), and applies the rules. Throws Error(usage) with one line for every
/// problem, such as "deck.toml:3:1: key 'model.layres' is not known (value 4); did you mean
/// 'model.layers'?". Touches no file, and every rank that is given the same text gets the same
/// answer.
Config read(const Source& deck, const std::vector<std::string>& overrides,
            const Target& target = {});

}  // namespace kzero::deck
