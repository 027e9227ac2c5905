#include "tokenizer/added_tokens.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace kzero::tokenizer {
namespace {

using Entries = std::vector<AddedTokens::Entry>;

/// The parts of a text: a token as "[id]", the others as they are, with a bar after each.
std::string parts(const AddedTokens& added, std::string_view text) {
  std::string all;
  added.for_each_part(
      text,
      [&](std::size_t begin, std::size_t end) {
        all.append(text.substr(begin, end - begin)).append("|");
      },
      [&](Token id) { all += fmt::format("[{}]|", id); });
  return all;
}

/// The same by comparing every entry at every place. Of equal entries, the first counts.
std::string plain_parts(const Entries& entries, std::string_view text) {
  std::string all, waiting;
  for (std::size_t at = 0; at < text.size();) {
    const AddedTokens::Entry* longest = nullptr;
    for (const auto& entry : entries) {
      const bool is_longer = longest == nullptr || entry.content.size() > longest->content.size();
      if (is_longer && text.substr(at).starts_with(entry.content)) longest = &entry;
    }
    if (longest == nullptr) {
      waiting += text[at++];
      continue;
    }
    if (!waiting.empty()) all += waiting + "|";
    waiting.clear();
    all += fmt::format("[{}]|", longest->id);
    at += longest->content.size();
  }
  return waiting.empty() ? all : all + waiting + "|";
}

TEST(AddedTokens, AreFoundAsByThePlainLoop) {
  std::mt19937 draw(1);
  const auto text_of = [&](std::size_t max) {
    constexpr std::string_view bytes("a<|\xc3\xff", 5);
    std::string text(1 + draw() % max, ' ');
    for (char& c : text) c = bytes[draw() % bytes.size()];
    return text;
  };
  for (int round = 0; round < 3000; ++round) {
    Entries entries;
    for (Token id = 0; id < static_cast<Token>(draw() % 40); ++id)
      entries.push_back({text_of(5), id});
    const std::string text = text_of(60);
    ASSERT_EQ(parts(AddedTokens(entries), text), plain_parts(entries, text));
  }
}

TEST(AddedTokens, MayBeManyInATextOfManyBeginnings) {
  Entries entries;  // quadratic time would exceed the test's limit
  for (Token id = 0; id < 300'000; ++id) entries.push_back({fmt::format("<|extra_{}|>", id), id});
  const AddedTokens added(entries);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "<|extra_";
  EXPECT_EQ(parts(added, text + "<|extra_299999|>"), text + "|[299999]|");
}

TEST(AddedTokens, MayTakeTheSpaceNextToThem) {
  const AddedTokens added(Entries{{.content = "<l>", .id = 1, .strips_left = true},
                                  {.content = "<r>", .id = 2, .strips_right = true}});
  EXPECT_EQ(parts(added, "a \u3000<l> b"), "a|[1]| b|");
  EXPECT_EQ(parts(added, "a <r>\n\u2028b"), "a |[2]|b|");
  EXPECT_EQ(parts(added, " <r>  <l> "), " |[2]|[1]| |");
  EXPECT_EQ(parts(added, "  <l>"), "[1]|");
  const AddedTokens spaces(Entries{{.content = "\n", .id = 3, .strips_left = true},
                                   {.content = "<r>", .id = 2, .strips_right = true}});
  EXPECT_EQ(parts(spaces, "a \n<r> \n"), "a|[3]|[2]|") << "the first token has the line end";
}

TEST(AddedTokens, MayCountOnlyAsWords) {
  const AddedTokens added(Entries{{.content = "re", .id = 1, .is_single_word = true}});
  EXPECT_EQ(parts(added, "re 're' more re"), "[1]| '|[1]|' more |[1]|");
  for (const std::string next : {"1", "_", "\u4e2d", "\u0301", "\u200d", "\u2160", "\u24d0"}) {
    EXPECT_EQ(parts(added, "re" + next), "re" + next + "|");
    EXPECT_EQ(parts(added, next + "re"), next + "re|");
  }
  EXPECT_EQ(parts(added, "re\u00b2"), "[1]|\u00b2|") << "no digit of decimal numbers";
}

}  // namespace
}  // namespace kzero::tokenizer
