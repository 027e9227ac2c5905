// Finds added tokens, such as "<|endoftext|>", in text. A token may take the white space next to
// it, and may count only as a word of its own.
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
    bool is_single_word = false;  // not found next to a letter, mark, digit or connector
    bool strips_left = false, strips_right = false;  // takes the white space there
  };

  AddedTokens() : AddedTokens(std::vector<Entry>()) {}
  /// Of several entries with the same content, only the first counts. O(n log n) for n entries.
  explicit AddedTokens(std::vector<Entry> entries);

  /// Calls between(begin, end) for each text without tokens that is not empty, and found(id) for
  /// each token, in order. A token that is white space may be found in what the one before took;
  /// the library's order of steps decides what then is whose.
  template <class Between, class Found>
  void for_each_part(std::string_view text, const Between& between, const Found& found) const {
    std::size_t taken = 0;
    for (std::size_t from = 0; const Entry* entry = find(text, from);) {
      const std::size_t begin = from;
      from += entry->content.size();
      const auto match = stretched(*entry, text, begin, taken);
      if (!match) continue;
      if (taken < match->begin) between(taken, match->begin);
      if (match->begin < match->end) found(entry->id);  // otherwise another token has it
      taken = match->end;
    }
    if (taken < text.size()) between(taken, text.size());
  }

 private:
  struct Match {
    std::size_t begin, end;  // bytes of the text
  };

  /// The entry of the leftmost match at or after byte `from`, the longest if several begin there;
  /// null if there is none. Moves `from` to where it begins.
  const Entry* find(std::string_view text, std::size_t& from) const;

  /// The match of an entry with the white space that it takes, except what is before `taken`;
  /// nothing if it is not a word of its own.
  static std::optional<Match> stretched(const Entry& entry, std::string_view text,
                                        std::size_t begin, std::size_t taken);

  /// The longest entry with which a text begins; null if there is none.
  const Entry* longest_at(std::string_view text) const;

  std::vector<Entry> entries_;             // sorted by content
  std::array<std::size_t, 257> begins_{};  // of the entries by their first byte, and the end
};

}  // namespace kzero::tokenizer
