// The symbols of which SentencePiece's BPE makes tokens: characters, and bytes of the characters
// that the vocabulary lacks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "tokenizer/definition.hpp"

namespace kzero::tokenizer {

class Pieces {
 public:
  /// The vocabulary has the token of each byte, and no merge has one of these as a side.
  explicit Pieces(const Definition& definition);

  /// The token with this spelling.
  std::optional<Token> find(std::string_view spelling) const;

  /// The end of the part that begins at byte `begin` < text.size() of UTF-8 text. No token spans
  /// the end of a part, so merging each part alone gives the same tokens. A text may be one word,
  /// of which most parts repeat.
  std::size_t part_end(std::string_view text, std::size_t begin) const;

  /// Appends the tokens of the characters of UTF-8 text.
  void append_symbols(std::string_view text, std::vector<Token>& symbols) const;

 private:
  std::unordered_map<std::string, Token> tokens_;    // by spelling
  std::unordered_map<std::uint32_t, Token> single_;  // by the only character
  std::unordered_set<std::uint64_t> joined_;         // neighbours within a merged token
  std::array<Token, 256> bytes_{};
};

}  // namespace kzero::tokenizer
