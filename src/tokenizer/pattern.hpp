// Regular expressions that cut text into words, as the "Split" of a tokenizer.json has them. They
// match as in Oniguruma, which Hugging Face's tokenizers use: the first alternative that leads to a
// match counts, not the longest.
//
//   a|b  (?:a)  (?:a)?  (?i:'s|'ll)  (?!a)
//   characters: themselves, \r \n \t \s \S \d \D, \p{L} \P{Lu} (general categories), \. and so on
//   sets: [a-z\p{L}] [^\s]
//   how many of a character or set: ? * + {2} {1,3} {1,}, and, without giving back, ?+ *+ ++
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

/// A pattern has something that kzero does not read. what() tells what, and where.
class UnknownPattern : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What a pattern may have, for messages.
inline constexpr std::string_view pattern_parts =
    R"(| (?:) (?i:) (?!) [] [^] ? * + {1,3}, \s \d \r \n \t and general categories such as \p{Lu})";

/// A set of characters: those with one of the properties or in one of the ranges, or all others.
struct CharacterSet {
  Properties properties = 0;
  std::vector<std::pair<std::int32_t, std::int32_t>> ranges{};  // first and last
  bool is_negated = false;

  bool contains(const Character& character) const;
};

/// A part of a pattern as it is written.
struct PatternPart {
  enum class Kind : std::uint8_t { characters, group, absent };
  using Sequence = std::vector<PatternPart>;

  Kind kind = Kind::characters;
  CharacterSet set{};                    // of characters
  std::vector<Sequence> alternatives{};  // of a group, and of what must be absent
  std::size_t min = 1, max = 1;          // a group: at most once
  bool is_possessive = false;            // never gives back what it matched
};

/// Reads UTF-8 text. Throws UnknownPattern, also for a pattern that may match no character.
std::vector<PatternPart::Sequence> read_pattern(std::string_view text);

class Pattern {
 public:
  /// Throws UnknownPattern.
  explicit Pattern(std::string_view text);

  /// The end of the match that begins at byte `begin` < text.size() of UTF-8 text; none if no match
  /// begins there. Takes time that grows with the lengths of runs, not with their products, for the
  /// patterns of tokenizers.
  std::optional<std::size_t> match(std::string_view text, std::size_t begin) const;

 private:
  static constexpr std::size_t ascii = 128;

  struct Step {
    enum class Kind : std::uint8_t { characters, either, jump, absent, end };
    Kind kind = Kind::end;
    bool is_possessive = false;
    std::size_t other = 0;  // the step to try second, to jump to, or after what must be absent
    std::size_t set = 0;
    std::size_t min = 1, max = 1;
  };
  struct Set {
    CharacterSet all;
    std::array<bool, ascii> has{};  // of the first characters
  };

  void add(const std::vector<PatternPart::Sequence>& alternatives);
  void add(const PatternPart& part);
  std::size_t add(Step step);
  std::optional<std::size_t> run(std::size_t at, std::string_view text, std::size_t from) const;
  std::optional<std::size_t> repeat(std::size_t at, std::string_view text, std::size_t from) const;
  std::size_t after(const Set& set, std::string_view text, std::size_t from) const;
  bool may_begin(std::size_t at, std::size_t code) const;

  std::vector<Step> steps_;
  std::vector<Set> sets_;
  std::vector<std::size_t> begins_;                          // steps at which alternatives begin
  std::array<std::vector<std::size_t>, ascii> begins_of_{};  // those with which a character begins
};

}  // namespace kzero::tokenizer
