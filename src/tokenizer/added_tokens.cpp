#include "tokenizer/added_tokens.hpp"

#include <algorithm>

namespace kzero::tokenizer {

void AddedTokens::add(std::string content, Token id) {
  auto& candidates = by_first_byte_[static_cast<unsigned char>(content.front())];
  candidates.push_back({std::move(content), id});
  std::stable_sort(
      candidates.begin(), candidates.end(),
      [](const Candidate& a, const Candidate& b) { return a.content.size() > b.content.size(); });
}

std::optional<AddedTokens::Match> AddedTokens::find(std::string_view text, std::size_t from) const {
  for (; from < text.size(); ++from) {
    for (const Candidate& candidate : by_first_byte_[static_cast<unsigned char>(text[from])]) {
      if (text.substr(from).starts_with(candidate.content)) {
        return Match{from, from + candidate.content.size(), candidate.id};
      }
    }
  }
  return {};
}

}  // namespace kzero::tokenizer
