// Turns a deck and command-line overrides into a Config that is complete and valid, or into one
// error that lists everything wrong with them, each with its location.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "deck/document.hpp"
#include "deck/rules.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

/// A value that the file named by model.config gives to a key.
struct ImpliedValue {
  std::string path;        // of the key
  Value value;             // of the key's type
  std::string origin;      // "FILE: num_hidden_layers is 2"
  bool is_binding = true;  // a deck with another value is wrong; else it overrides this one
};

/// Reads the file that model.config names. Throws Error.
using Architecture = std::function<std::vector<ImpliedValue>(const std::string& file)>;

/// Reads the deck, then the overrides ("train.steps=100", "train.precision=bf16",
/// "data.files=a.txt,b.txt"), and applies the rules. Throws Error(usage) with one line for every
/// problem, such as "deck.toml:3:1: key 'model.layres' is not known (value 4); did you mean
/// 'model.layers'?". Touches no file but through `architecture`, without which model.config brings
/// nothing; every rank that is given the same texts gets the same answer.
Config read(const Source& deck, const std::vector<std::string>& overrides,
            const Target& target = {}, const Architecture& architecture = {});

}  // namespace kzero::deck
