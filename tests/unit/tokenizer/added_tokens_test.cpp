#include "tokenizer/added_tokens.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace kzero::tokenizer {
namespace {

using Entries = std::vector<AddedTokens::Entry>;

/// Finds the leftmost, longest match by comparing every entry. Of equal entries, returns the first.
std::optional<AddedTokens::Match> plain_find(const Entries& entries, std::string_view text,
                                             std::size_t from) {
  for (; from < text.size(); ++from) {
    const AddedTokens::Entry* longest = nullptr;
    for (const auto& entry : entries) {
      const bool is_longer = longest == nullptr || entry.content.size() > longest->content.size();
      if (is_longer && text.substr(from).starts_with(entry.content)) longest = &entry;
    }
    if (longest != nullptr)
      return AddedTokens::Match{from, from + longest->content.size(), longest->id};
  }
  return {};
}

TEST(AddedTokens, AreFoundAsByThePlainLoop) {
  std::mt19937 draw(1);
  const auto text_of = [&](std::size_t max) {
    constexpr std::string_view bytes("a<|\xc3\xff", 5);
    std::string text(1 + draw() % max, ' ');
    for (char& c : text) c = bytes[draw() % bytes.size()];
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    Entries entries;
    for (Token id = 0; id < static_cast<Token>(draw() % 40); ++id)
      entries.push_back({text_of(5), id});
    const AddedTokens added(entries);
    const std::string text = text_of(60);
    for (std::size_t from = 0; from <= text.size(); ++from) {
      const auto found = added.find(text, from), expected = plain_find(entries, text, from);
      ASSERT_EQ(found.has_value(), expected.has_value()) << text << " from " << from;
      if (!found) continue;
      EXPECT_EQ(found->begin, expected->begin);
      EXPECT_EQ(found->end, expected->end);
      EXPECT_EQ(found->id, expected->id);
    }
  }
}

TEST(AddedTokens, MayBeManyInATextOfManyBeginnings) {
  Entries entries;  // quadratic time would exceed the test's limit
  for (Token id = 0; id < 300'000; ++id) entries.push_back({fmt::format("<|extra_{}|>", id), id});
  const AddedTokens added(entries);
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "<|extra_";
  text += "<|extra_299999|>";
  const auto found = added.find(text, 0);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->id, 299'999);
  EXPECT_EQ(found->end, text.size());
}

}  // namespace
}  // namespace kzero::tokenizer
