// Every deck in tests/data/decks/bad must give exactly the message in the file beside it.
#include <gtest/gtest.h>

#include <string>

#include "base/error.hpp"
#include "deck_files.hpp"

namespace kzero::deck {
namespace {

class BadDeck : public testing::TestWithParam<std::string> {};

TEST_P(BadDeck, gives_its_exact_message) {
  const auto path = decks() / "bad" / (GetParam() + ".toml");
  const DeckFile deck = read_deck_file(path);
  const std::string expected = text_of(decks() / "bad" / (GetParam() + ".expected"));
  try {
    read(deck.source, deck.overrides, deck.target);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(error.what() + std::string("\n"), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Decks, BadDeck, testing::ValuesIn(deck_names("bad")),
                         [](const auto& name) { return name.param; });

TEST(BadDecks, are_many) { EXPECT_GE(deck_names("bad").size(), 45U); }

}  // namespace
}  // namespace kzero::deck
