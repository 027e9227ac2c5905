#include "tokenizer/split.hpp"

#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

WordEnd word_end(const SplitStep& step, std::string_view text, std::size_t begin) {
  if (!step.pattern) return {text.size(), true};
  if (const auto end = step.pattern->match(text, begin)) return {*end, true};
  std::size_t at = begin;
  do at = character_at(text, at).end;
  while (at < text.size() && !step.pattern->match(text, at));
  return {at, false};
}

}  // namespace kzero::tokenizer
