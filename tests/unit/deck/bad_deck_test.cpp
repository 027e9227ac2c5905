// Every deck in tests/data/decks/bad_decks.txt must give exactly its message.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <sstream>
#include <stdexcept>
#include <string>

#include "base/error.hpp"
#include "deck_files.hpp"
#include "support/bad_decks.hpp"

namespace kzero::tests {

// GoogleTest prints the parameter of a failed test.
void PrintTo(const BadDeck& deck, std::ostream* stream) { *stream << deck.name << ".toml"; }

}  // namespace kzero::tests

namespace kzero::deck {
namespace {

class BadDeck : public testing::TestWithParam<tests::BadDeck> {};

TEST_P(BadDeck, gives_its_exact_message) {
  const DeckFile deck = deck_file(GetParam().name + ".toml", GetParam().text);
  try {
    read(deck.source, deck.overrides, deck.target);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what() + std::string("\n"), GetParam().message);
  }
}

INSTANTIATE_TEST_SUITE_P(Decks, BadDeck, testing::ValuesIn(tests::bad_decks(decks())),
                         [](const auto& deck) { return deck.param.name; });

TEST(BadDecks, are_many) { EXPECT_GE(tests::bad_decks(decks()).size(), 150U); }

TEST(BadDecks, are_sorted_by_name) {
  EXPECT_TRUE(std::ranges::is_sorted(tests::bad_decks(decks()), {}, &tests::BadDeck::name));
}

std::vector<tests::BadDeck> cases_of(const std::string& text) {
  std::istringstream input(text);
  return tests::read_bad_decks(input);
}

TEST(BadDecks, are_read_byte_for_byte) {
  const auto cases = cases_of(
      "# a comment\n\n=== one\n# ranks = 2\n\n[a]\\x0D\nb = '\\xE9\\d'\\x20\n--- message\n"
      "one.toml:1: \\x41\nsecond\n\n=== two\n--- message\nempty\n");
  ASSERT_EQ(cases.size(), 2U);
  EXPECT_EQ(cases[0].name, "one");
  EXPECT_EQ(cases[0].text, "# ranks = 2\n\n[a]\r\nb = '\xE9\\d' \n");
  EXPECT_EQ(cases[0].message, "one.toml:1: \\x41\nsecond\n");
  EXPECT_EQ(cases[1].text, "");
  EXPECT_EQ(cases[1].message, "empty\n");
}

TEST(BadDecks, refuse_lines_that_fit_nowhere) {
  for (const char* text : {"[a]\n", "=== one\n[a]\n", "=== one\n=== two\n", "--- message\n",
                           "=== one\n--- message\na\n--- message\nb\n", "=== one\n\\xG1\n",
                           "=== one\n\\x1\n", "=== one\n--- message\na\n\nb\n"}) {
    EXPECT_THROW(cases_of(text), std::runtime_error) << text;
  }
}

}  // namespace
}  // namespace kzero::deck
