#include "tokenizer/added_tokens.hpp"

#include <algorithm>

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

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  if (entries_.empty()) return {};
  for (; from < text.size(); ++from) {
    if (const Entry* entry = longest_at(text.substr(from)))
      return Match{from, from + entry->content.size(), entry->id};
  }
  return {};
}

}  // namespace kzero::tokenizer
