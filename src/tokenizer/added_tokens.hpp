// Finds added tokens, such as "<|endoftext|>", in text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::tokenizer {

class AddedTokens {
 public:
  /// Adds a token. `content` is not empty.
  void add(std::string content, Token id);

  struct Match {
    std::size_t begin, end;  // bytes of the text
    Token id;
  };

  /// The leftmost match from byte `from` on, and of those the longest.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  struct Candidate {
    std::string content;
    Token id;
  };
  std::array<std::vector<Candidate>, 256> by_first_byte_{};  // the longest first
};

}  // namespace kzero::tokenizer
