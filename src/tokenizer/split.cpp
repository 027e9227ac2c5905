#include "tokenizer/split.hpp"

#include <algorithm>

#include "tokenizer/space_marks.hpp"
#include "tokenizer/unicode.hpp"

namespace kzero::tokenizer {

namespace {

using Kind = CharacterClass;

/// Text from one byte on. Offsets are in bytes of the text.
class Scanner {
 public:
  Scanner(std::string_view text, std::size_t begin) : text_(text), begin_(begin) {}

  std::size_t begin() const { return begin_; }
  bool is_end(std::size_t at) const { return at == text_.size(); }
  Character at(std::size_t offset) const { return character_at(text_, offset); }
  bool has(std::size_t offset, Kind kind) const {
    return !is_end(offset) && at(offset).kind == kind;
  }

  /// The end of a run of characters of one class that begins at an offset, at most `max` of them.
  std::size_t run(std::size_t from, Kind kind, int max = 0) const {
    for (int count = 0; !is_end(from) && (max == 0 || count < max); ++count) {
      const Character next = at(from);
      if (next.kind != kind) break;
      from = next.end;
    }
    return from;
  }

  /// The end of a run of line ends that begins at an offset.
  std::size_t line_ends(std::size_t from) const {
    while (!is_end(from) && is_line_end(text_[from])) ++from;
    return from;
  }

  static bool is_line_end(std::int32_t code) { return code == '\r' || code == '\n'; }

  /// \s+(?!\S)|\s+ : a run of white space. Its last character belongs to the word that follows, if
  /// there is one, unless it is the only character of the run.
  std::size_t white_space() const {
    std::size_t end = begin_;
    std::size_t last = begin_;
    while (has(end, Kind::space)) {
      last = end;
      end = at(end).end;
    }
    return is_end(end) || last == begin_ ? end : last;
  }

  /// The end of 's, 't, 'm, 'd, 're, 've or 'll; `begin` if there is none. If case is ignored, an s
  /// may also be U+017F, the only other character that folds to one of these letters.
  std::size_t contraction(bool ignores_case) const {
    if (text_[begin_] != '\'' || is_end(begin_ + 1)) return begin_;
    const Character first = at(begin_ + 1);
    const std::int32_t a = folded(first.code, ignores_case);
    if (a == 's' || a == 't' || a == 'm' || a == 'd') return first.end;
    if (is_end(first.end)) return begin_;
    const Character second = at(first.end);
    const std::int32_t b = folded(second.code, ignores_case);
    const bool is_found =
        (a == 'r' && b == 'e') || (a == 'v' && b == 'e') || (a == 'l' && b == 'l');
    return is_found ? second.end : begin_;
  }

 private:
  static std::int32_t folded(std::int32_t code, bool ignores_case) {
    if (!ignores_case) return code;
    if (code >= 'A' && code <= 'Z') return code + ('a' - 'A');
    return code == 0x17F ? 's' : code;
  }

  std::string_view text_;
  std::size_t begin_;
};

std::size_t gpt2_end(const Scanner& scan) {
  if (const std::size_t end = scan.contraction(false); end != scan.begin()) return end;
  const Character first = scan.at(scan.begin());
  const bool has_space = first.code == ' ' && !scan.is_end(first.end);
  const std::size_t from = has_space ? first.end : scan.begin();
  const Kind kind = has_space ? scan.at(from).kind : first.kind;
  return kind == Kind::space ? scan.white_space() : scan.run(from, kind);
}

/// \s*[\r\n]+ : white space up to its last line end; `begin` if it has none.
std::size_t lines_end(const Scanner& scan) {
  std::size_t end = scan.begin();
  for (std::size_t next = end; scan.has(next, Kind::space);) {
    const Character space = scan.at(next);
    next = space.end;
    if (Scanner::is_line_end(space.code)) end = next;
  }
  return end;
}

std::size_t llama3_end(const Scanner& scan, int digits) {
  if (const std::size_t end = scan.contraction(true); end != scan.begin()) return end;
  const Character first = scan.at(scan.begin());
  if (first.kind == Kind::letter) return scan.run(scan.begin(), Kind::letter);
  const bool may_lead = first.kind != Kind::number && !Scanner::is_line_end(first.code);
  if (may_lead && scan.has(first.end, Kind::letter)) return scan.run(first.end, Kind::letter);
  if (first.kind == Kind::number) return scan.run(scan.begin(), Kind::number, digits);
  const std::size_t from = first.code == ' ' ? first.end : scan.begin();
  if (scan.has(from, Kind::other)) return scan.line_ends(scan.run(from, Kind::other));
  if (const std::size_t end = lines_end(scan); end != scan.begin()) return end;
  return scan.white_space();
}

/// A run of at most `max` numbers, or of everything else.
std::size_t digits_end(const Scanner& scan, int max) {
  if (scan.has(scan.begin(), Kind::number)) return scan.run(scan.begin(), Kind::number, max);
  std::size_t end = scan.begin();
  while (!scan.is_end(end) && !scan.has(end, Kind::number)) end = scan.at(end).end;
  return end;
}

}  // namespace

std::size_t word_end(Split split, std::string_view text, std::size_t begin) {
  const Scanner scan(text, begin);
  switch (split) {
    case Split::none:
      return text.size();
    case Split::gpt2:
      return gpt2_end(scan);
    case Split::digits:
      return digits_end(scan, 0);
    case Split::single_digits:
      return digits_end(scan, 1);
    case Split::space_marks:
      return std::min(text.find(space_mark, begin + 1), text.size());
    default:
      return llama3_end(scan, split == Split::llama3 ? 3 : 1);
  }
}

}  // namespace kzero::tokenizer
