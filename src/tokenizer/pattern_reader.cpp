#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tokenizer/pattern.hpp"

namespace kzero::tokenizer {

namespace {

using Kind = PatternPart::Kind;
using Sequence = PatternPart::Sequence;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();
constexpr std::size_t longest_pattern = 10'000;  // characters; a match may need a frame for each

/// Characters that Unicode folds to the letters of ASCII.
constexpr std::int32_t long_s = 0x17F, kelvin = 0x212A;

bool is_letter(std::int32_t code) { return (code | 0x20) >= 'a' && (code | 0x20) <= 'z'; }

bool may_be_empty(const PatternPart& part);

bool may_be_empty(const std::vector<Sequence>& alternatives) {
  return std::ranges::any_of(alternatives, [](const Sequence& sequence) {
    return std::ranges::all_of(sequence,
                               [](const PatternPart& part) { return may_be_empty(part); });
  });
}

bool may_be_empty(const PatternPart& part) { return part.kind == Kind::absent || part.min == 0; }

/// Reads one pattern from its beginning to its end.
class PatternReader {
 public:
  explicit PatternReader(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
      const Character character = character_at(text, at);
      codes_.push_back(character.code);
      at = character.end;
    }
  }

  std::vector<Sequence> read() {
    if (codes_.size() > longest_pattern) {
      throw UnknownPattern(fmt::format("more than {} characters", longest_pattern));
    }
    auto alternatives = read_alternatives(0);
    if (!is_end()) refuse(1);
    if (may_be_empty(alternatives)) throw UnknownPattern("a match of no character");
    return alternatives;
  }

 private:
  bool is_end() const { return at_ == codes_.size(); }
  bool is_next(std::int32_t code) const { return !is_end() && codes_[at_] == code; }
  bool is_next(std::string_view text) const {
    return codes_.size() - at_ >= text.size() &&
           std::equal(text.begin(), text.end(), codes_.begin() + static_cast<std::ptrdiff_t>(at_));
  }
  bool skip(std::string_view text) {
    const bool is_found = is_next(text);
    if (is_found) at_ += text.size();
    return is_found;
  }

  /// Names up to `count` characters from here on.
  [[noreturn]] void refuse(std::size_t count) const {
    constexpr std::size_t max_shown = 20;
    std::string part;
    const std::size_t end = std::min(codes_.size(), at_ + std::min(count, max_shown));
    for (std::size_t i = at_; i < end; ++i) {
      if (codes_[i] >= 0x20 && codes_[i] < 0x7F)
        part += static_cast<char>(codes_[i]);
      else
        part += fmt::format("U+{:04X}", codes_[i]);
    }
    throw UnknownPattern(part.empty() ? "its end"
                                      : fmt::format("{}, its character {}", part, at_ + 1));
  }

  std::vector<Sequence> read_alternatives(int depth) {
    constexpr int max_depth = 20;
    if (depth > max_depth) refuse(1);
    std::vector<Sequence> alternatives;
    do alternatives.push_back(read_sequence(depth));
    while (skip("|"));
    return alternatives;
  }

  Sequence read_sequence(int depth) {
    Sequence parts;
    while (!is_end() && !is_next('|') && !is_next(')')) {
      PatternPart part = read_part(depth);
      read_count(part);
      parts.push_back(std::move(part));
    }
    return parts;
  }

  PatternPart read_part(int depth) {
    if (is_next('(')) return read_group(depth);
    const std::size_t begin = at_;
    if (ignores_case_ && is_one_when_folded()) refuse(2);
    PatternPart part;
    part.set = is_next('[') ? read_set() : read_one(false);
    if (ignores_case_ && !fold(part.set)) refuse_from(begin);
    return part;
  }

  /// Some characters fold to two letters, such as the German sharp s.
  bool is_one_when_folded() const {
    if (at_ + 1 >= codes_.size() || !is_letter(codes_[at_]) || !is_letter(codes_[at_ + 1])) {
      return false;
    }
    const std::string pair{static_cast<char>(codes_[at_] | 0x20),
                           static_cast<char>(codes_[at_ + 1] | 0x20)};
    return pair == "ss" || pair == "st" || pair == "ff" || pair == "fi" || pair == "fl";
  }

  /// Adds what differs from the characters in case only. Returns false if some are not ASCII.
  static bool fold(CharacterSet& set) {
    if (set.properties != 0 || set.is_negated) return false;
    const auto ranges = set.ranges;
    for (const auto& [first, last] : ranges) {
      if (last > 0x7F) return false;
      for (std::int32_t code = first; code <= last; ++code) {
        if (!is_letter(code)) continue;
        set.ranges.emplace_back(code ^ 0x20, code ^ 0x20);
        const std::int32_t small = code | 0x20;
        if (small == 's') set.ranges.emplace_back(long_s, long_s);
        if (small == 'k') set.ranges.emplace_back(kelvin, kelvin);
      }
    }
    return true;
  }

  PatternPart read_group(int depth) {
    const std::size_t begin = at_;
    PatternPart part{is_next("(?!") ? Kind::absent : Kind::group};
    const bool was = ignores_case_;
    if (is_next("(?i:")) ignores_case_ = true;
    if (!skip("(?!") && !skip("(?:") && !skip("(?i:")) refuse(3);
    part.alternatives = read_alternatives(depth + 1);
    if (!skip(")")) refuse(1);
    if (may_be_empty(part.alternatives)) refuse_from(begin);
    ignores_case_ = was;
    return part;
  }

  /// ? * + {2} {1,3} {1,} and ?+ *+ ++ : Oniguruma reads further signs as another repetition.
  void read_count(PatternPart& part) {
    const std::size_t begin = at_;
    if (skip("?"))
      part.min = 0;
    else if (skip("*"))
      part.min = 0, part.max = no_limit;
    else if (skip("+"))
      part.max = no_limit;
    else if (skip("{"))
      read_limits(part);
    if (at_ == begin) return;
    const bool is_group = part.kind != Kind::characters;
    const bool has_limits = codes_[begin] == '{';
    if (is_group && (part.kind == Kind::absent || has_limits || part.max > 1)) refuse_from(begin);
    if (!is_group && !has_limits && skip("+")) part.is_possessive = true;
    if (is_next('?') || is_next('*') || is_next('+') || is_next('{')) ++at_, refuse_from(begin);
  }

  [[noreturn]] void refuse_from(std::size_t begin) {
    const std::size_t count = std::max(at_ - begin, std::size_t{1});
    at_ = begin;
    refuse(count);
  }

  void read_limits(PatternPart& part) {
    const auto number = [&] {
      std::size_t value = 0;
      const std::size_t begin = at_;
      for (; !is_end() && codes_[at_] >= '0' && codes_[at_] <= '9' && at_ < begin + 4; ++at_) {
        value = 10 * value + static_cast<std::size_t>(codes_[at_] - '0');
      }
      if (at_ == begin) refuse_from(begin - 1);
      return value;
    };
    const std::size_t begin = at_ - 1;
    part.min = part.max = number();
    if (skip(",")) part.max = is_next('}') ? no_limit : number();
    if (!skip("}") || part.max < part.min || part.max == 0) refuse_from(begin);
  }

  /// A character, or a set that has a name.
  CharacterSet read_one(bool is_in_set) {
    constexpr std::string_view signs = ".^$*+?{}()[]|";
    const std::int32_t code = codes_[at_];
    if (code == '\\') return read_escaped();
    const bool is_sign = code < 0x80 && signs.find(static_cast<char>(code)) != signs.npos;
    if (code < 0 || (is_in_set ? code == '[' || is_next("&&") : is_sign)) refuse(2);
    ++at_;
    return {.ranges = {{code, code}}};
  }

  CharacterSet read_escaped() {
    if (at_ + 1 == codes_.size()) refuse(1);
    if (is_next("\\p{") || is_next("\\P{")) return read_categories();
    if (skip("\\s")) return {.properties = white_space};
    if (skip("\\S")) return {.properties = no_white_space};
    if (skip("\\d")) return {.properties = *categories_named("Nd")};
    if (skip("\\D")) return {.properties = all_categories & ~*categories_named("Nd")};
    std::int32_t code = codes_[at_ + 1];
    const bool is_sign =
        code > 0x20 && code < 0x7F && !is_letter(code) && (code < '0' || code > '9');
    if (code == 'r')
      code = '\r';
    else if (code == 'n')
      code = '\n';
    else if (code == 't')
      code = '\t';
    else if (!is_sign)
      refuse(2);
    at_ += 2;
    return {.ranges = {{code, code}}};
  }

  CharacterSet read_categories() {
    const bool is_other = codes_[at_ + 1] == 'P';
    std::string name;
    for (std::size_t i = at_ + 3; i < codes_.size() && codes_[i] != '}' && name.size() < 20; ++i) {
      name += codes_[i] > 0x20 && codes_[i] < 0x7F ? static_cast<char>(codes_[i]) : ' ';
    }
    const auto found = categories_named(name);
    const std::size_t end = at_ + 3 + name.size();
    if (!found || end >= codes_.size() || codes_[end] != '}') refuse(name.size() + 4);
    at_ += name.size() + 4;
    return {.properties = is_other ? all_categories & ~*found : *found};
  }

  CharacterSet read_set() {
    CharacterSet set;
    ++at_;
    set.is_negated = skip("^");
    const std::size_t begin = at_;
    do add_range(set, at_ == begin);
    while (!skip("]"));
    return set;
  }

  /// A dash is itself only at the beginning and at the end of a set.
  void add_range(CharacterSet& set, bool is_first) {
    const std::size_t from = at_;
    const bool is_dash = is_next('-');
    if (is_end() || is_next(']') || (is_dash && !is_first && !is_next("-]"))) refuse(2);
    CharacterSet one = read_one(true);
    if (is_next('-') && !is_next("-]")) {
      ++at_;
      if (is_end() || is_dash || one.ranges.empty()) refuse_from(from);
      const CharacterSet last = read_one(true);
      if (last.ranges.empty() || last.ranges[0].first < one.ranges[0].first) refuse_from(from);
      one.ranges[0].second = last.ranges[0].first;
    }
    set.properties |= one.properties;
    set.ranges.insert(set.ranges.end(), one.ranges.begin(), one.ranges.end());
  }

  std::vector<std::int32_t> codes_;
  std::size_t at_ = 0;
  bool ignores_case_ = false;
};

}  // namespace

std::vector<Sequence> read_pattern(std::string_view text) { return PatternReader(text).read(); }

}  // namespace kzero::tokenizer
