// Multiple-choice questions in llm.c's format (write_evalfile in dev/data/data_common.py of llm.c).
// The header has 256 int32: 20240522, version 1, the number of examples, bytes of the longest. Each
// example then has 16-bit integers: 65535, its bytes, its number, its label, the number of endings,
// and for the context and each ending the number of tokens and the tokens. Version 2, which llm.c
// does not have, is the same with 32-bit integers; an example begins with 2^32 - 1.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

/// A context, its endings, and the position of the right ending.
struct ChoiceExample {
  Index label = 0;
  std::vector<Token> context;
  std::vector<std::vector<Token>> endings;
};

/// Returns whether these are the first bytes, at least 4, of such a file.
bool is_choice_file(std::span<const std::byte> head);

/// Reads all examples. Each must have a context and at least two endings, none of them empty, and
/// tokens below `vocab`. Otherwise throws Error(files) naming path and example.
std::vector<ChoiceExample> read_choices(const std::string& path, Index vocab);

/// The number of tokens of the longest context with one of its endings; 0 without examples.
Index longest_row(const std::vector<ChoiceExample>& examples);

}  // namespace kzero::data
