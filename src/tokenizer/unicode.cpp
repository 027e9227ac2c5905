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

/// ICU's numbers of general categories (UCharCategory) are the indices.
constexpr std::array<std::string_view, U_CHAR_CATEGORY_COUNT> names{
    "Cn", "Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Me", "Mc", "Nd", "Nl", "No", "Zs", "Zl", "Zp",
    "Cc", "Cf", "Co", "Cs", "Pd", "Ps", "Pe", "Pc", "Po", "Sm", "Sc", "Sk", "So", "Pi", "Pf"};
constexpr std::uint8_t Lu = 1, Ll = 2, Lm = 4, Lo = 5, Mn = 6, Mc = 8, Nd = 9, Pd = 19, Po = 23,
                       Sm = 24, So = 27;

struct Range {
  std::int32_t first, last;
  std::uint8_t category;
};

/// The Unicode version of the categories. ICU 72 (Unicode 15.0) has another category for the
/// characters below (UnicodeData.txt). `older` is one that it knows. The others are newer.
constexpr int categories_version = 16;
constexpr std::int32_t older = 0x1171E;
constexpr Range since_15[] = {
    {0x0897, 0x0897, Mn},   {0x1B4E, 0x1B4F, Po},   {0x1B7F, 0x1B7F, Po},   {0x1C89, 0x1C89, Lu},
    {0x1C8A, 0x1C8A, Ll},   {0x2427, 0x2429, So},   {0x2FFC, 0x2FFF, So},   {0x31E4, 0x31E5, So},
    {0x31EF, 0x31EF, So},   {0xA7CB, 0xA7CC, Lu},   {0xA7CD, 0xA7CD, Ll},   {0xA7DA, 0xA7DA, Lu},
    {0xA7DB, 0xA7DB, Ll},   {0xA7DC, 0xA7DC, Lu},   {0x105C0, 0x105F3, Lo}, {0x10D40, 0x10D49, Nd},
    {0x10D4A, 0x10D4D, Lo}, {0x10D4E, 0x10D4E, Lm}, {0x10D4F, 0x10D4F, Lo}, {0x10D50, 0x10D65, Lu},
    {0x10D69, 0x10D6D, Mn}, {0x10D6E, 0x10D6E, Pd}, {0x10D6F, 0x10D6F, Lm}, {0x10D70, 0x10D85, Ll},
    {0x10D8E, 0x10D8F, Sm}, {0x10EC2, 0x10EC4, Lo}, {0x10EFC, 0x10EFC, Mn}, {0x11380, 0x11389, Lo},
    {0x1138B, 0x1138B, Lo}, {0x1138E, 0x1138E, Lo}, {0x11390, 0x113B5, Lo}, {0x113B7, 0x113B7, Lo},
    {0x113B8, 0x113BA, Mc}, {0x113BB, 0x113C0, Mn}, {0x113C2, 0x113C2, Mc}, {0x113C5, 0x113C5, Mc},
    {0x113C7, 0x113CA, Mc}, {0x113CC, 0x113CD, Mc}, {0x113CE, 0x113CE, Mn}, {0x113CF, 0x113CF, Mc},
    {0x113D0, 0x113D0, Mn}, {0x113D1, 0x113D1, Lo}, {0x113D2, 0x113D2, Mn}, {0x113D3, 0x113D3, Lo},
    {0x113D4, 0x113D5, Po}, {0x113D7, 0x113D8, Po}, {0x113E1, 0x113E2, Mn}, {0x116D0, 0x116E3, Nd},
    {0x1171E, 0x1171E, Mc}, {0x11BC0, 0x11BE0, Lo}, {0x11BE1, 0x11BE1, Po}, {0x11BF0, 0x11BF9, Nd},
    {0x11F5A, 0x11F5A, Mn}, {0x13460, 0x143FA, Lo}, {0x16100, 0x1611D, Lo}, {0x1611E, 0x16129, Mn},
    {0x1612A, 0x1612C, Mc}, {0x1612D, 0x1612F, Mn}, {0x16130, 0x16139, Nd}, {0x16D40, 0x16D42, Lm},
    {0x16D43, 0x16D6A, Lo}, {0x16D6B, 0x16D6C, Lm}, {0x16D6D, 0x16D6F, Po}, {0x16D70, 0x16D79, Nd},
    {0x18CFF, 0x18CFF, Lo}, {0x1CC00, 0x1CCEF, So}, {0x1CCF0, 0x1CCF9, Nd}, {0x1CD00, 0x1CEB3, So},
    {0x1E5D0, 0x1E5ED, Lo}, {0x1E5EE, 0x1E5EF, Mn}, {0x1E5F0, 0x1E5F0, Lo}, {0x1E5F1, 0x1E5FA, Nd},
    {0x1E5FF, 0x1E5FF, Po}, {0x1F8B2, 0x1F8BB, So}, {0x1F8C0, 0x1F8C1, So}, {0x1FA89, 0x1FA89, So},
    {0x1FA8F, 0x1FA8F, So}, {0x1FABE, 0x1FABE, So}, {0x1FAC6, 0x1FAC6, So}, {0x1FADC, 0x1FADC, So},
    {0x1FADF, 0x1FADF, So}, {0x1FAE9, 0x1FAE9, So}, {0x1FBCB, 0x1FBEF, So}, {0x2EBF0, 0x2EE5D, Lo},
};

std::uint8_t newer_category(std::int32_t code) {
  const auto* const range = std::lower_bound(
      std::begin(since_15), std::end(since_15), code,
      [](const Range& candidate, std::int32_t wanted) { return candidate.last < wanted; });
  const bool is_in = range != std::end(since_15) && range->first <= code;
  return is_in ? range->category : std::uint8_t{U_UNASSIGNED};
}

std::uint8_t category_of(std::int32_t code) {
  const auto category = static_cast<std::uint8_t>(u_charType(code));
  if (category == U_UNASSIGNED || code == older) return newer_category(code);
  std::array<std::uint8_t, U_MAX_VERSION_LENGTH> age{};
  u_charAge(code, age.data());
  return age[0] > categories_version ? std::uint8_t{U_UNASSIGNED} : category;
}

constexpr Properties properties_of(std::uint8_t category, bool is_space) {
  return Properties{1} << category | (is_space ? white_space : no_white_space);
}

Properties properties_by_icu(std::int32_t code) {
  return properties_of(category_of(code), u_isUWhiteSpace(code) != 0);
}

/// The properties of the characters up to U+1FFFF, which cover nearly all text.
const std::vector<Properties>& common_properties() {
  static const auto table = [] {
    std::vector<Properties> properties(0x20000);
    for (std::size_t code = 0; code < properties.size(); ++code) {
      properties[code] = properties_by_icu(static_cast<std::int32_t>(code));
    }
    return properties;
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

std::optional<Properties> categories_named(std::string_view name) {
  Properties found = 0;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (name == names[i] || (name.size() == 1 && names[i].starts_with(name))) {
      found |= Properties{1} << i;
    }
  }
  return found == 0 ? std::nullopt : std::optional(found);
}

Character character_at(std::string_view text, std::size_t begin) {
  const Utf8Character next = first_utf8_character(text.substr(begin));
  if (next.bytes == 0) return {-1, properties_of(U_UNASSIGNED, false), begin + 1};
  const auto code = static_cast<std::int32_t>(next.code);
  const auto& table = common_properties();
  return {code, next.code < table.size() ? table[next.code] : properties_by_icu(code),
          begin + next.bytes};
}

/// As \w in Rust's regular expressions (Unicode, UTS #18).
bool Character::is_word() const {
  constexpr std::int32_t non_joiner = 0x200C, joiner = 0x200D;
  static const Properties categories = *categories_named("L") | *categories_named("M") |
                                       *categories_named("Nd") | *categories_named("Nl") |
                                       *categories_named("Pc");
  return (properties & categories) != 0 || code == non_joiner || code == joiner ||
         u_hasBinaryProperty(code, UCHAR_ALPHABETIC) != 0;
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
