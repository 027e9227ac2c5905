// Turns a deck and command-line overrides into a complete and valid Config, or into one error that
// lists every problem with its location.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "deck/document.hpp"
#include "deck/rules.hpp"
#include "deck/schema.hpp"

namespace kzero::deck {

/// A value that the file named by model.config sets for a key.
struct ImpliedValue {
  std::string path;        // of the key
  Value value;             // of the key's type
  std::string origin;      // "FILE: num_hidden_layers is 2"
  bool is_binding = true;  // another value in the deck is an error; false: the deck wins
  bool may_grow = false;   // binding, but a larger count in the deck wins
};

/// Returns whether a deck may give the key this value.
bool allows(const ImpliedValue& implied, const Value& value);

/// Reads the file that model.config names. Throws Error.
using Architecture = std::function<std::vector<ImpliedValue>(const std::string& file)>;

/// Reads the deck, then the overrides ("train.steps=100", "train.precision=bf16",
/// "data.files=a.txt,b.txt"), and applies the rules. Throws Error(usage) with one line for every
/// problem, such as "deck.toml:3:1: key 'model.layres' is not known (value 4); did you mean
/// 'model.layers'?". Accesses files only through `architecture`; without it, model.config has no
/// effect. Every rank that is given the same texts gets the same answer.
Config read(const Source& deck, const std::vector<std::string>& overrides,
            const Target& target = {}, const Architecture& architecture = {});

}  // namespace kzero::deck
