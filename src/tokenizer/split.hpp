// Splits text into words, within which tokens are merged. A tokenizer may apply several splits, one
// after the other.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "tokenizer/pattern.hpp"

namespace kzero::tokenizer {

inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// Cuts each piece of the step before into smaller ones: the matches, and what is between them.
struct SplitStep {
  std::shared_ptr<const Pattern> pattern{};  // none: the piece is one word
  bool has_prefix_space = false;  // a space is put before a piece that does not begin with one
  bool drops_rest = false;        // what is between matches is left out
};

struct WordEnd {
  std::size_t end;  // the byte after it
  bool is_match;
};

/// The word or the text between words that begins at byte `begin` < text.size() of UTF-8 text.
WordEnd word_end(const SplitStep& step, std::string_view text, std::size_t begin);

/// Calls use(word) for each word that the steps make of UTF-8 text, in order.
template <class F>
void for_each_word(std::span<const SplitStep> steps, std::string_view text, const F& use) {
  if (steps.empty()) return use(text);
  std::string changed;
  if (steps.front().has_prefix_space && !text.empty() && text.front() != ' ') {
    changed.reserve(text.size() + 1);
    changed += ' ';
    changed += text;
    text = changed;
  }
  for (std::size_t at = 0; at < text.size();) {
    const auto [end, is_match] = word_end(steps.front(), text, at);
    if (is_match || !steps.front().drops_rest) {
      for_each_word(steps.subspan(1), text.substr(at, end - at), use);
    }
    at = end;
  }
}

}  // namespace kzero::tokenizer
