#include "tokenizer/pieces.hpp"

#include <algorithm>

#include "base/utf8.hpp"
#include "tokenizer/space_marks.hpp"

namespace kzero::tokenizer {

namespace {

/// Removes the first character of UTF-8 text, and returns it.
Utf8Character take_character(std::string_view& text) {
  Utf8Character next = first_utf8_character(text);
  text.remove_prefix(std::max<std::size_t>(next.bytes, 1));
  return next;
}

constexpr std::uint64_t pair_of(std::uint32_t left, std::uint32_t right) {
  return static_cast<std::uint64_t>(left) << 32U | right;
}

}  // namespace

Pieces::Pieces(const Definition& definition) {
  std::unordered_map<Token, std::string_view> spellings;
  for (const auto& entry : definition.vocabulary) {
    tokens_.emplace(entry.spelling, entry.id);
    spellings.emplace(entry.id, entry.spelling);
    std::string_view rest = entry.spelling;
    const Utf8Character first = take_character(rest);
    if (rest.empty()) single_.emplace(first.code, entry.id);
  }
  for (const Merge& merge : definition.merges) {
    std::string_view rest = spellings.at(merge.merged);
    for (std::uint32_t left = take_character(rest).code; !rest.empty();) {
      const std::uint32_t right = take_character(rest).code;
      joined_.insert(pair_of(left, right));
      left = right;
    }
  }
  for (std::size_t byte = 0; byte < bytes_.size(); ++byte) {
    bytes_[byte] = tokens_.at(byte_piece(static_cast<unsigned char>(byte)));
  }
}

std::optional<Token> Pieces::find(std::string_view spelling) const {
  const auto found = tokens_.find(std::string(spelling));
  return found == tokens_.end() ? std::nullopt : std::optional(found->second);
}

std::size_t Pieces::part_end(std::string_view text, std::size_t begin) const {
  std::string_view rest = text.substr(begin);
  std::uint32_t left = take_character(rest).code;
  while (!rest.empty()) {
    const std::size_t end = text.size() - rest.size();
    const std::uint32_t right = take_character(rest).code;
    if (!joined_.contains(pair_of(left, right))) return end;
    left = right;
  }
  return text.size();
}

void Pieces::append_symbols(std::string_view text, std::vector<Token>& symbols) const {
  while (!text.empty()) {
    const std::string_view before = text;
    const auto found = single_.find(take_character(text).code);
    if (found != single_.end()) {
      symbols.push_back(found->second);
      continue;
    }
    for (const char byte : before.substr(0, before.size() - text.size())) {
      symbols.push_back(bytes_[static_cast<unsigned char>(byte)]);
    }
  }
}

}  // namespace kzero::tokenizer
