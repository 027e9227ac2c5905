// Finds added tokens, such as "<|endoftext|>", in text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero::tokenizer {

class AddedTokens {
 public:
  struct Entry {
    std::string content;  // not empty
    Token id;
  };

  AddedTokens() : AddedTokens(std::vector<Entry>()) {}
  /// Of several entries with the same content, only the first counts. O(n log n) for n entries.
  explicit AddedTokens(std::vector<Entry> entries);

  struct Match {
    std::size_t begin, end;  // bytes of the text
    Token id;
  };

  /// The leftmost match at or after byte `from`; the longest if several begin there.
  std::optional<Match> find(std::string_view text, std::size_t from) const;

 private:
  /// The longest entry with which a text begins; null if there is none.
  const Entry* longest_at(std::string_view text) const;

  std::vector<Entry> entries_;             // sorted by content
  std::array<std::size_t, 257> begins_{};  // of the entries by their first byte, and the end
};

}  // namespace kzero::tokenizer
