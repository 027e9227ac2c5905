// The ends of words for the three patterns. tests/tokenizer compares more cases with the library.
#include "tokenizer/split.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace kzero::tokenizer {
namespace {

using Words = std::vector<std::string>;

Words words(Split split, const std::string& text) {
  Words found;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = word_end(split, text, at);
    found.push_back(text.substr(at, end - at));
    if (end <= at) break;
    at = end;
  }
  return found;
}

TEST(Split, TakesTheSpaceBeforeAWord) {
  EXPECT_EQ(words(Split::gpt2, "one two  three"), (Words{"one", " two", " ", " three"}));
  EXPECT_EQ(words(Split::llama3, "one two  three"), (Words{"one", " two", " ", " three"}));
}

TEST(Split, CutsContractions) {
  EXPECT_EQ(words(Split::gpt2, "I'll we've 'S"), (Words{"I", "'ll", " we", "'ve", " '", "S"}));
  EXPECT_EQ(words(Split::llama3, "I'LL we'vE'S"), (Words{"I", "'LL", " we", "'vE", "'S"}));
  EXPECT_EQ(words(Split::qwen2, "a'\u017Fx"), (Words{"a", "'\u017F", "x"}));
  EXPECT_EQ(words(Split::gpt2, "r'"), (Words{"r", "'"}));
  EXPECT_EQ(words(Split::llama3, "'r"), (Words{"'r"}));
}

TEST(Split, TakesDigitsAsEachFamilyDoes) {
  EXPECT_EQ(words(Split::gpt2, "a 12345"), (Words{"a", " 12345"}));
  EXPECT_EQ(words(Split::llama3, "a 12345"), (Words{"a", " ", "123", "45"}));
  EXPECT_EQ(words(Split::qwen2, "a 123"), (Words{"a", " ", "1", "2", "3"}));
}

TEST(Split, LeavesTheLastSpaceToTheNextWord) {
  EXPECT_EQ(words(Split::gpt2, "a\t\tb"), (Words{"a", "\t", "\t", "b"}));
  EXPECT_EQ(words(Split::gpt2, "a \n "), (Words{"a", " \n "}));
  EXPECT_EQ(words(Split::llama3, "a\t\tb"), (Words{"a", "\t", "\tb"}));
}

TEST(Split, TakesLineEndsTogether) {
  EXPECT_EQ(words(Split::gpt2, "a.\n\n b"), (Words{"a", ".", "\n\n", " b"}));
  EXPECT_EQ(words(Split::llama3, "a.\n\n b"), (Words{"a", ".\n\n", " b"}));
  EXPECT_EQ(words(Split::llama3, "a \n \t b"), (Words{"a", " \n", " \t", " b"}));
}

TEST(Split, KnowsClassesBeyondAscii) {
  EXPECT_EQ(words(Split::llama3, "\u00e4\u0301\u4e2d\u00bd"),
            (Words{"\u00e4", "\u0301\u4e2d", "\u00bd"}));
  EXPECT_EQ(words(Split::gpt2, "a\u3000\u2028b"), (Words{"a", "\u3000", "\u2028", "b"}));
  EXPECT_EQ(words(Split::gpt2, "\U0001F600\u200d\U0001F600a"),
            (Words{"\U0001F600\u200d\U0001F600", "a"}));
}

TEST(Split, KnowsLettersThatIcu72DoesNot) {
  EXPECT_EQ(words(Split::gpt2, "\u1C89a"), (Words{"\u1C89a"}));          // Unicode 16
  EXPECT_EQ(words(Split::gpt2, "\U0002EBF0a"), (Words{"\U0002EBF0a"}));  // Unicode 15.1
}

}  // namespace
}  // namespace kzero::tokenizer
