// Multiple-choice questions in llm.c's format (write_evalfile in dev/data/data_common.py of llm.c):
// a header of 256 int32 - 20240522, version 1, the number of examples, bytes of the longest - and
// then 16-bit integers, of each example: 65535, its bytes, its number, its label, the number of
// endings, and for the context and each ending the number of tokens and the tokens.
#pragma once

#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::data {

/// A context, endings of which one is right, and the position of that one.
struct ChoiceExample {
  Index label = 0;
  std::vector<Token> context;
  std::vector<std::vector<Token>> endings;
};

/// Returns whether the file begins as one of these; false if it cannot be read.
bool is_choice_file(const std::string& path);

/// Reads all examples. Each has a context, two endings or more, none of them empty, and tokens
/// below `vocab`. Throws Error(files) naming path and example for anything else.
std::vector<ChoiceExample> read_choices(const std::string& path, Index vocab);

/// The tokens of the longest context with one of its endings; 0 without examples.
Index longest_row(const std::vector<ChoiceExample>& examples);

}  // namespace kzero::data
