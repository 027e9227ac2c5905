#include "tokenizer/added_tokens.hpp"

#include <algorithm>

#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

namespace {

/// Orders texts that agree in their first `depth` bytes by the next byte. A text that ends there
/// comes first.
int byte_at(const AddedTokens::Entry& entry, std::size_t depth) {
  if (depth >= entry.content.size()) return -1;
  return static_cast<unsigned char>(entry.content[depth]);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<Entry> entries) : entries_(std::move(entries)) {
  std::ranges::stable_sort(entries_, {}, &Entry::content);
  std::size_t at = 0;
  for (int byte = 0; byte < 256; ++byte) {
    begins_[byte] = at;
    while (at < entries_.size() && byte_at(entries_[at], 0) == byte) ++at;
  }
  begins_.back() = at;
}

const AddedTokens::Entry* AddedTokens::longest_at(std::string_view text) const {
  const auto first = static_cast<unsigned char>(text.front());
  auto begin = entries_.begin() + static_cast<Index>(begins_[first]);
  auto end = entries_.begin() + static_cast<Index>(begins_[first + 1U]);
  const Entry* longest = nullptr;
  for (std::size_t depth = 1; begin != end; ++depth) {  // these agree with the text so far
    if (begin->content.size() == depth) longest = &*begin;
    if (depth == text.size()) break;
    const int byte = static_cast<unsigned char>(text[depth]);
    const auto next = [depth](const Entry& entry) { return byte_at(entry, depth); };
    end = std::ranges::upper_bound(begin, end, byte, {}, next);
    begin = std::ranges::lower_bound(begin, end, byte, {}, next);
  }
  return longest;
}

const AddedTokens::Entry* AddedTokens::find(std::string_view text, std::size_t& from) const {
  if (entries_.empty()) return nullptr;
  for (; from < text.size(); ++from) {
    if (const Entry* entry = longest_at(text.substr(from))) return entry;
  }
  return nullptr;
}

std::optional<AddedTokens::Match> AddedTokens::stretched(const Entry& entry, std::string_view text,
                                                         std::size_t begin, std::size_t taken) {
  std::size_t end = begin + entry.content.size();
  if (entry.is_single_word) {
    if (begin > 0 && character_at(text, begin_of_character(text, begin)).is_word()) return {};
    if (end < text.size() && character_at(text, end).is_word()) return {};
  }
  if (entry.strips_left) {
    while (begin > 0) {
      const std::size_t before = begin_of_character(text, begin);
      if (!character_at(text, before).is_space()) break;
      begin = before;
    }
    begin = std::max(begin, taken);
  }
  while (entry.strips_right && end < text.size() && character_at(text, end).is_space()) {
    end = character_at(text, end).end;
  }
  return Match{begin, end};
}

}  // namespace kzero::tokenizer
