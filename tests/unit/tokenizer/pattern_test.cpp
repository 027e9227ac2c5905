// Patterns alone. tests/tokenizer compares those of tokenizers with the library, which uses
// Oniguruma.
#include "tokenizer/pattern.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kzero::tokenizer {
namespace {

/// The text that the pattern matches at the beginning; "none" if it matches nothing.
std::string match(std::string_view pattern, const std::string& text) {
  const auto end = Pattern(pattern).match(text, 0);
  return end ? text.substr(0, *end) : "none";
}

std::string problem_of(std::string_view pattern) {
  try {
    const Pattern read(pattern);
    return "";
  } catch (const UnknownPattern& problem) {
    return problem.what();
  }
}

TEST(Pattern, TakesTheFirstAlternativeThatLeadsToAMatch) {
  EXPECT_EQ(match("a|ab", "ab"), "a");
  EXPECT_EQ(match("(?:a|ab)c", "abc"), "abc");
  EXPECT_EQ(match("(?:ab)?abc", "abc"), "abc");
  EXPECT_EQ(match("a+(?:ab|b)?", "aab"), "aab");
  EXPECT_EQ(match("b|c", "a"), "none");
}

TEST(Pattern, GivesBackWholeCharacters) {
  EXPECT_EQ(match("\\p{L}+\u00e4", "x"), "none");
  EXPECT_EQ(match("\\p{L}*\u00e4", "\u00e4\u00e4\u4e2d"), "\u00e4\u00e4");
  EXPECT_EQ(match("\\p{L}*[^a]{2}", "\u4e2d"), "none");
  EXPECT_EQ(match("a{2,3}a", "aaaa"), "aaaa");
  EXPECT_EQ(match("a{2,3}a", "aaa"), "aaa");
  EXPECT_EQ(match("a{2,3}a", "aa"), "none");
  EXPECT_EQ(match("a*+a", "aaa"), "none");
  EXPECT_EQ(match("a?+a", "a"), "none");
  EXPECT_EQ(match(R"(\s+(?!\S))", "  a"), " ");
}

TEST(Pattern, MayBeLong) {
  const std::string text(10'000, 'a');
  EXPECT_EQ(match(text, text), text);
  std::string optional;
  for (int i = 0; i < 3'333; ++i) optional += "a*+";
  EXPECT_EQ(match(optional + "b", text + "b"), text + "b");
  EXPECT_EQ(match(optional + "b", text), "none");
}

TEST(Pattern, KnowsCategoriesAndSpaces) {
  EXPECT_EQ(match(R"([\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+)", "A\u01c5\u02b0\u4e2d\u0301a"),
            "A\u01c5\u02b0\u4e2d\u0301");
  EXPECT_EQ(match(R"(\P{L}+)", "1 \u0301a"), "1 \u0301");
  EXPECT_EQ(match(R"([^\S\n]+)", " \t\u3000\n"), " \t\u3000");
  EXPECT_EQ(match(R"(\D\d+)", "x1\u0663\u00b2"), "x1\u0663");
  EXPECT_EQ(match(R"([-a\]\-c-e]+)", "-a]cdef"), "-a]cde");
  EXPECT_EQ(match(R"(\p{Lu})", "\u1c89"), "\u1c89") << "Unicode 16";
  EXPECT_EQ(match(R"(\p{Mc})", "\U0001171E"), "\U0001171E") << "Mn before Unicode 16";
}

TEST(Pattern, IgnoresCaseAsUnicodeFoldsIt) {
  EXPECT_EQ(match("(?i:[sk])", "\u212a"), "\u212a");
  EXPECT_EQ(match("a(?i:'Ll|'s)s", "a'LLs"), "a'LLs");
  EXPECT_EQ(match("(?i:'s)s", "'\u017fs"), "'\u017fs");
  EXPECT_EQ(match("(?i:'s)s", "'sS"), "none");
}

TEST(Pattern, NamesWhatItDoesNotRead) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"(\w+)", R"(\w, its character 1)"},
      {"a.", "., its character 2"},
      {"^a", "^a, its character 1"},
      {"a$", "$, its character 2"},
      {"(a)", "(a), its character 1"},
      {"(?=a)b", "(?=, its character 1"},
      {"(?<=a)b", "(?<, its character 1"},
      {"a)", "), its character 2"},
      {"(?:a", "its end"},
      {"a+?", "+?, its character 2"},
      {"a{2}+", "{2}+, its character 2"},
      {"(?:a)+", "+, its character 6"},
      {"(?:a){2}", "{2}, its character 6"},
      {"(?!a)?b", "?, its character 6"},
      {"a{,3}", "{, its character 2"},
      {"a{3,2}", "{3,2}, its character 2"},
      {"a{0}", "{0}, its character 2"},
      {"a{99999}", "{9999, its character 2"},
      {R"(\p{Han})", R"(\p{Han}, its character 1)"},
      {R"({1}\p{L)", "{1, its character 1"},
      {R"(a\p{L)", R"(\p{L, its character 2)"},
      {R"(a\)", R"(\, its character 2)"},
      {"[a&&b]", "&&, its character 3"},
      {"[a[b]]", "[b, its character 3"},
      {"[]a]", "]a, its character 2"},
      {"[^]", "], its character 3"},
      {"[a", "its end"},
      {"[a-", "a-, its character 2"},
      {"[b-a]", "b-a, its character 2"},
      {"[a-c-e]", "-e, its character 5"},
      {R"([\s-a])", R"(\s-, its character 2)"},
      {R"(\u{1})", R"(\u, its character 1)"},
      {"(?i:ss)", "ss, its character 5"},
      {"(?i:\u00e4)", "U+00E4, its character 5"},
      {R"((?i:\p{L}))", R"(\p{L}, its character 5)"},
      {"(?i:[^a])", "[^a], its character 5"},
      {"", "a match of no character"},
      {"a|b*", "a match of no character"},
      {"(?!c)(?:a)?", "a match of no character"},
      {"(?:a|b?)c", "(?:a|b?), its character 1"},
      {"a(?:)", "(?:), its character 2"},
      {"(?!a*)", "(?!a*), its character 1"},
      {std::string(10'001, 'a'), "more than 10000 characters"},
  };
  for (const auto& [pattern, problem] : cases) EXPECT_EQ(problem_of(pattern), problem) << pattern;
  std::string deep;
  for (int i = 0; i < 100; ++i) deep += "(?:";
  EXPECT_EQ(problem_of(deep), "(, its character 64");
}

}  // namespace
}  // namespace kzero::tokenizer
