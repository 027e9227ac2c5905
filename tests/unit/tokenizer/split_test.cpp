// The ends of words for the patterns of three tokenizers. tests/tokenizer compares more cases with
// the library.
#include "tokenizer/split.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

namespace kzero::tokenizer {
namespace {

using Words = std::vector<std::string>;

constexpr std::string_view gpt2 = gpt2_pattern;
constexpr std::string_view llama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view qwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";

Words words(std::string_view pattern, const std::string& text, bool drops_rest = false) {
  Words found;
  const SplitStep step{.pattern = std::make_shared<Pattern>(pattern), .drops_rest = drops_rest};
  for_each_word(std::array{step}, text, [&](std::string_view word) { found.emplace_back(word); });
  return found;
}

TEST(Split, TakesTheSpaceBeforeAWord) {
  EXPECT_EQ(words(gpt2, "one two  three"), (Words{"one", " two", " ", " three"}));
  EXPECT_EQ(words(llama3, "one two  three"), (Words{"one", " two", " ", " three"}));
}

TEST(Split, CutsContractions) {
  EXPECT_EQ(words(gpt2, "I'll we've 'S"), (Words{"I", "'ll", " we", "'ve", " '", "S"}));
  EXPECT_EQ(words(llama3, "I'LL we'vE'S"), (Words{"I", "'LL", " we", "'vE", "'S"}));
  EXPECT_EQ(words(qwen2, "a'\u017Fx"), (Words{"a", "'\u017F", "x"}));
  EXPECT_EQ(words(gpt2, "r'"), (Words{"r", "'"}));
  EXPECT_EQ(words(llama3, "'r"), (Words{"'r"}));
}

TEST(Split, TakesDigitsAsEachFamilyDoes) {
  EXPECT_EQ(words(gpt2, "a 12345"), (Words{"a", " 12345"}));
  EXPECT_EQ(words(llama3, "a 12345"), (Words{"a", " ", "123", "45"}));
  EXPECT_EQ(words(qwen2, "a 123"), (Words{"a", " ", "1", "2", "3"}));
}

TEST(Split, LeavesTheLastSpaceToTheNextWord) {
  EXPECT_EQ(words(gpt2, "a\t\tb"), (Words{"a", "\t", "\t", "b"}));
  EXPECT_EQ(words(gpt2, "a \n "), (Words{"a", " \n "}));
  EXPECT_EQ(words(llama3, "a\t\tb"), (Words{"a", "\t", "\tb"}));
}

TEST(Split, TakesLineEndsTogether) {
  EXPECT_EQ(words(gpt2, "a.\n\n b"), (Words{"a", ".", "\n\n", " b"}));
  EXPECT_EQ(words(llama3, "a.\n\n b"), (Words{"a", ".\n\n", " b"}));
  EXPECT_EQ(words(llama3, "a \n \t b"), (Words{"a", " \n", " \t", " b"}));
}

TEST(Split, KnowsClassesBeyondAscii) {
  EXPECT_EQ(words(llama3, "\u00e4\u0301\u4e2d\u00bd"), (Words{"\u00e4", "\u0301\u4e2d", "\u00bd"}));
  EXPECT_EQ(words(gpt2, "a\u3000\u2028b"), (Words{"a", "\u3000", "\u2028", "b"}));
  EXPECT_EQ(words(gpt2, "\U0001F600\u200d\U0001F600a"), (Words{"\U0001F600\u200d\U0001F600", "a"}));
}

TEST(Split, KnowsLettersThatIcu72DoesNot) {
  EXPECT_EQ(words(gpt2, "\u1C89a"), (Words{"\u1C89a"}));          // Unicode 16
  EXPECT_EQ(words(gpt2, "\U0002EBF0a"), (Words{"\U0002EBF0a"}));  // Unicode 15.1
}

TEST(Split, KeepsOrDropsWhatIsBetweenMatches) {
  EXPECT_EQ(words("\\p{N}{1,3}", "ab1234 \u4e2d5"), (Words{"ab", "123", "4", " \u4e2d", "5"}));
  EXPECT_EQ(words("[\\p{L}]+", "ab1234 \u4e2d5", true), (Words{"ab", "\u4e2d"}));
}

}  // namespace
}  // namespace kzero::tokenizer
