// Splits text into words, within which tokens are merged. The patterns are those of GPT-2, Llama 3
// and Qwen 2, which Hugging Face's tokenizers pass to a regular-expression engine. A tokenizer may
// apply several splits, one after the other.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace kzero::tokenizer {

enum class Split {
  none,           // the text is one word
  gpt2,           // 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
  llama3,         // (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
                  // ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
  qwen2,          // the same with \p{N} in place of \p{N}{1,3}
  digits,         // \p{N}+ and what is between: Digits
  single_digits,  // \p{N} and what is between: Digits with individual_digits
  space_marks,    // U+2581 and what follows it, up to the next: Metaspace
};

/// Cuts each piece of the step before into smaller ones.
struct SplitStep {
  Split split = Split::gpt2;
  bool has_prefix_space = false;  // a space is put before a piece that does not begin with one
};

inline constexpr std::string_view gpt2_pattern =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

inline constexpr std::string_view llama3_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
inline constexpr std::string_view qwen2_pattern =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

/// The end of the word that begins at byte `begin` < text.size() of UTF-8 text.
std::size_t word_end(Split split, std::string_view text, std::size_t begin);

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
    const std::size_t end = word_end(steps.front().split, text, at);
    for_each_word(steps.subspan(1), text.substr(at, end - at), use);
    at = end;
  }
}

}  // namespace kzero::tokenizer
