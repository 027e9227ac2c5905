// Compares merging with a plain loop over all neighbours, on words of a small alphabet.
#include "tokenizer/merges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace kzero::tokenizer {
namespace {

/// Repeatedly applies the first merge in the list that matches anywhere, at its leftmost match.
std::vector<Token> merged_plainly(const std::vector<Merge>& merges, std::vector<Token> word) {
  for (bool is_changed = true; is_changed;) {
    is_changed = false;
    for (const Merge& merge : merges) {
      for (std::size_t i = 0; i + 1 < word.size() && !is_changed; ++i) {
        if (word[i] != merge.left || word[i + 1] != merge.right) continue;
        word[i] = merge.merged;
        word.erase(word.begin() + static_cast<Index>(i) + 1);
        is_changed = true;
      }
      if (is_changed) break;
    }
  }
  return word;
}

TEST(Merges, EqualThePlainLoop) {
  // Each pair becomes its own token, as after training. No two pairs become the same token.
  std::mt19937 draw(5);
  std::vector<Merge> merges;
  std::vector<std::pair<Token, Token>> seen;
  for (Token next = 3; next < 60;) {
    const std::pair<Token, Token> pair{static_cast<Token>(draw() % next),
                                       static_cast<Token>(draw() % next)};
    if (std::find(seen.begin(), seen.end(), pair) != seen.end()) continue;
    seen.push_back(pair);
    merges.push_back({pair.first, pair.second, next++});
  }
  const Merges table(merges);
  Merges::Scratch scratch;
  for (const std::size_t length : {0, 1, 2, 3, 7, 64, 257}) {
    for (int repeat = 0; repeat < 20; ++repeat) {
      std::vector<Token> word(length);
      for (Token& token : word) token = static_cast<Token>(draw() % 3);
      std::vector<Token> found;
      table.apply(word, found, scratch);
      EXPECT_EQ(found, merged_plainly(merges, word));
    }
  }
}

TEST(Merges, OfNothingChangeNothing) {
  Merges::Scratch scratch;
  std::vector<Token> found;
  Merges({}).apply(std::vector<Token>{2, 1, 2}, found, scratch);
  EXPECT_EQ(found, (std::vector<Token>{2, 1, 2}));
}

TEST(Merges, TakeTheLastOfTwoEqualPairs) {
  // (0, 1) counts at its second position in the list, after (1, 2).
  Merges::Scratch scratch;
  std::vector<Token> found;
  const std::vector<Merge> merges{{0, 1, 3}, {1, 2, 4}, {0, 1, 3}};
  Merges(merges).apply(std::vector<Token>{0, 1, 2}, found, scratch);
  EXPECT_EQ(found, (std::vector<Token>{0, 4}));
}

}  // namespace
}  // namespace kzero::tokenizer
