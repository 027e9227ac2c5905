#include "tokenizer/unicode.hpp"

#include <unicode/bytestream.h>
#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/uniset.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <vector>

#include "base/error.hpp"
#include "base/utf8.hpp"

namespace kzero::tokenizer {

namespace {

struct Range {
  std::int32_t first, last;
  CharacterClass kind;
};

constexpr CharacterClass letter = CharacterClass::letter;
constexpr CharacterClass number = CharacterClass::number;

/// The Unicode version of the character classes, and the letters and numbers in it that ICU 72
/// (Unicode 15.0) does not know (UnicodeData.txt, general categories L and N).
constexpr int classes_version = 16;
constexpr Range since_15[] = {
    {0x1C89, 0x1C8A, letter},   {0xA7CB, 0xA7CD, letter},   {0xA7DA, 0xA7DC, letter},
    {0x105C0, 0x105F3, letter}, {0x10D40, 0x10D49, number}, {0x10D4A, 0x10D65, letter},
    {0x10D6F, 0x10D85, letter}, {0x10EC2, 0x10EC4, letter}, {0x11380, 0x11389, letter},
    {0x1138B, 0x1138B, letter}, {0x1138E, 0x1138E, letter}, {0x11390, 0x113B5, letter},
    {0x113B7, 0x113B7, letter}, {0x113D1, 0x113D1, letter}, {0x113D3, 0x113D3, letter},
    {0x116D0, 0x116E3, number}, {0x11BC0, 0x11BE0, letter}, {0x11BF0, 0x11BF9, number},
    {0x13460, 0x143FA, letter}, {0x16100, 0x1611D, letter}, {0x16130, 0x16139, number},
    {0x16D40, 0x16D6C, letter}, {0x16D70, 0x16D79, number}, {0x18CFF, 0x18CFF, letter},
    {0x1CCF0, 0x1CCF9, number}, {0x1E5D0, 0x1E5ED, letter}, {0x1E5F0, 0x1E5F0, letter},
    {0x1E5F1, 0x1E5FA, number}, {0x2EBF0, 0x2EE5D, letter},
};

CharacterClass newer_class(std::int32_t code) {
  const auto* const range = std::lower_bound(
      std::begin(since_15), std::end(since_15), code,
      [](const Range& candidate, std::int32_t wanted) { return candidate.last < wanted; });
  const bool is_in = range != std::end(since_15) && range->first <= code;
  return is_in ? range->kind : CharacterClass::other;
}

CharacterClass class_by_icu(std::int32_t code) {
  const auto category = static_cast<std::uint32_t>(U_GET_GC_MASK(code));
  if ((category & U_GC_CN_MASK) != 0) return newer_class(code);
  if ((category & (U_GC_L_MASK | U_GC_N_MASK)) == 0) {
    return u_isUWhiteSpace(code) != 0 ? CharacterClass::space : CharacterClass::other;
  }
  std::array<std::uint8_t, U_MAX_VERSION_LENGTH> age{};
  u_charAge(code, age.data());
  if (age[0] > classes_version) return CharacterClass::other;
  return (category & U_GC_L_MASK) != 0 ? letter : number;
}

/// The classes of the characters up to U+FFFF, which cover nearly all text.
const std::array<CharacterClass, 0x10000>& basic_classes() {
  static const auto table = [] {
    std::array<CharacterClass, 0x10000> classes{};
    for (std::size_t code = 0; code < classes.size(); ++code) {
      classes[code] = class_by_icu(static_cast<std::int32_t>(code));
    }
    return classes;
  }();
  return table;
}

/// The characters of the Unicode version of the library's composition.
const icu::UnicodeSet& composed_characters() {
  static const icu::UnicodeSet known = [] {
    UErrorCode status = U_ZERO_ERROR;
    icu::UnicodeSet set(UNICODE_STRING_SIMPLE("[:age=9.0:]"), status);
    KZERO_REQUIRE(U_SUCCESS(status) != 0, ExitCode::other, "ICU has no ages of characters: {}",
                  u_errorName(status));
    set.freeze();
    return set;
  }();
  return known;
}

const icu::Normalizer2& composer() {
  static const icu::FilteredNormalizer2 filtered = [] {
    UErrorCode status = U_ZERO_ERROR;
    const icu::Normalizer2* current = icu::Normalizer2::getNFCInstance(status);
    KZERO_REQUIRE(U_SUCCESS(status) != 0, ExitCode::other, "ICU has no normalization data: {}",
                  u_errorName(status));
    return icu::FilteredNormalizer2(*current, composed_characters());
  }();
  return filtered;
}

/// A combining mark, and its canonical combining class, which is not 0.
struct Mark {
  std::uint8_t order;
  std::string_view bytes;
};

/// Appends the marks that a character is. The three Tibetan vowel signs of class 0 that decompose
/// into marks become these; they are never composed again. Returns whether it is any.
bool append_marks(std::int32_t code, std::string_view bytes, std::vector<Mark>& marks) {
  constexpr std::uint8_t below = 129, above = 130, further_below = 132;
  constexpr Mark first{below, "\u0F71"};
  if (code == 0x0F73 || code == 0x0F75 || code == 0x0F81) {
    marks.push_back(first);
    marks.push_back(code == 0x0F73   ? Mark{above, "\u0F72"}
                    : code == 0x0F75 ? Mark{further_below, "\u0F74"}
                                     : Mark{above, "\u0F80"});
    return true;
  }
  const std::uint8_t order = u_getCombiningClass(code);
  if (order == 0 || !composed_characters().contains(code)) return false;
  marks.push_back({order, bytes});
  return true;
}

/// Puts each long run of combining marks into canonical order, which changes no composed text. ICU
/// inserts marks one by one, in quadratic time. Empty if there is no such run.
std::string with_sorted_marks(std::string_view text) {
  constexpr std::size_t long_run = 64;       // marks; more than any writing system needs
  constexpr unsigned char lead_byte = 0xCC;  // of U+0300, the first mark
  std::string changed;
  std::size_t copied = 0;
  std::vector<Mark> marks;
  for (std::size_t at = 0; at < text.size();) {
    if (static_cast<unsigned char>(text[at]) < lead_byte) {
      ++at;
      continue;
    }
    const std::size_t begin = at;
    marks.clear();
    while (at < text.size()) {
      const Utf8Character next = first_utf8_character(text.substr(at));
      const bool is_mark = next.bytes > 0 && append_marks(static_cast<std::int32_t>(next.code),
                                                          text.substr(at, next.bytes), marks);
      if (!is_mark) break;
      at += next.bytes;
    }
    if (at == begin) ++at;  // the other bytes of a character are below lead_byte
    if (marks.size() < long_run) continue;
    std::ranges::stable_sort(marks, {}, &Mark::order);
    changed += text.substr(copied, begin - copied);
    for (const Mark& mark : marks) changed += mark.bytes;
    copied = at;
  }
  if (copied > 0) changed += text.substr(copied);
  return changed;
}

}  // namespace

Character character_at(std::string_view text, std::size_t begin) {
  const Utf8Character next = first_utf8_character(text.substr(begin));
  if (next.bytes == 0) return {-1, CharacterClass::other, begin + 1};
  const auto code = static_cast<std::int32_t>(next.code);
  return {code, next.code < 0x10000 ? basic_classes()[next.code] : class_by_icu(code),
          begin + next.bytes};
}

std::string composed(std::string_view text) {
  const std::string sorted = with_sorted_marks(text);
  if (!sorted.empty()) text = sorted;
  std::string result;
  icu::StringByteSink<std::string> sink(&result, static_cast<std::int32_t>(text.size()));
  UErrorCode status = U_ZERO_ERROR;
  composer().normalizeUTF8(0, icu::StringPiece(text.data(), static_cast<std::int32_t>(text.size())),
                           sink, nullptr, status);
  KZERO_REQUIRE(U_SUCCESS(status) != 0, ExitCode::other,
                "ICU cannot compose a text of {} bytes: {}", text.size(), u_errorName(status));
  return result;
}

}  // namespace kzero::tokenizer
