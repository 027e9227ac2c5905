#include "data/goldfish.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <vector>

#include "base/checksum.hpp"
#include "data/dataset.hpp"
#include "support/document_file.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {
namespace {

using data::Goldfish;
using Tokens = std::vector<Token>;

Tokens mixed_tokens(Index count) {
  Tokens tokens;
  for (Index i = 0; i < count; ++i) tokens.push_back(static_cast<Token>((i * i * 7 + 3 * i) % 101));
  return tokens;
}

/// The positions that have lost their target.
std::vector<Index> dropped(const Goldfish& goldfish, const Tokens& tokens,
                           const std::vector<std::int32_t>& begin = {}) {
  const Tokens inputs(tokens.begin(), tokens.end() - 1);
  Tokens targets(tokens.begin() + 1, tokens.end());
  const Index left = data::drop_targets(goldfish, inputs, begin, targets);
  std::vector<Index> found;
  for (Index i = 0; i < std::ssize(targets); ++i) {
    if (targets[i] == no_target)
      found.push_back(i);
    else
      EXPECT_EQ(targets[i], tokens[i + 1]);
  }
  EXPECT_EQ(left, std::ssize(targets) - std::ssize(found));
  return found;
}

// Found with the Python package xxhash 4.1.0: xxh3_64_intdigest(pack("<3i", ...)) < (2**64 - 1) //
// k.
TEST(Goldfish, DropsByTheHashOfTheTokensBefore) {
  const Tokens tokens = mixed_tokens(41);
  EXPECT_EQ(dropped({2, 1}, tokens), (std::vector<Index>{0,  1,  3,  4,  6,  8,  10, 11, 13, 14,
                                                         17, 18, 19, 20, 22, 24, 28, 35, 38, 39}));
  EXPECT_EQ(dropped({4, 3}, tokens), (std::vector<Index>{3, 4, 6, 9, 33, 35, 36, 39}));
  EXPECT_EQ(dropped({3, 13}, tokens), (std::vector<Index>{19, 23, 26, 28, 30, 31, 35, 36}));
}

TEST(Goldfish, DropsOneInKAsAMean) {
  for (const Index k : {2, 4, 50}) {
    Index count = 0;
    for (Token i = 0; i < 40000; ++i) count += data::is_dropped({k, 4}, Tokens{i, 7, i / 3, 1});
    const double mean = 40000.0 / static_cast<double>(k);
    EXPECT_NEAR(static_cast<double>(count), mean, 5 * std::sqrt(mean)) << k;
  }
}

TEST(Goldfish, TheSameTextLosesTheSameTargetsWhereverItIs) {
  const Tokens text = mixed_tokens(60);
  const std::vector<Index> alone = dropped({3, 5}, text);
  ASSERT_GT(alone.size(), 5U);
  Tokens moved(17, 99);
  moved.insert(moved.end(), text.begin(), text.end());
  std::vector<Index> found;
  for (const Index at : dropped({3, 5}, moved)) {
    if (at >= 17 + 4) found.push_back(at - 17);
  }
  EXPECT_EQ(found, alone);
}

TEST(Goldfish, TokensOfOtherDocumentsDoNotDecide) {
  const Tokens tokens = mixed_tokens(41);
  std::vector<std::int32_t> begin(40, 0);
  std::fill(begin.begin() + 20, begin.end(), 20);
  const std::vector<Index> together = dropped({2, 6}, tokens),
                           apart = dropped({2, 6}, tokens, begin);
  std::vector<Index> expected;
  for (const Index at : together) {
    if (at < 20 || at >= 25) expected.push_back(at);
  }
  EXPECT_EQ(apart, expected);
  EXPECT_NE(apart, together) << "the case shows nothing";
}

class GoldfishData : public testing::Test {
 protected:
  /// Compares all samples and their counts with a plain loop over the samples without goldfish
  /// loss.
  static void check(const deck::Data& deck, Index sequence) {
    deck::Data without = deck;
    without.goldfish_k = 0;
    const auto plain = data::open_dataset(without, sequence, 256, 3);
    const auto fish = data::open_dataset(deck, sequence, 256, 3);
    EXPECT_NE(plain.training_digest(), fish.training_digest());
    EXPECT_FALSE(plain.training->counts_by_reading());
    EXPECT_TRUE(fish.training->counts_by_reading());
    Index all = 0, kept = 0;
    const auto size = static_cast<std::size_t>(sequence);
    for (Index sample = 0; sample < 20; ++sample) {
      Tokens inputs(size), targets(size), got_inputs(size), got(size);
      std::vector<std::int32_t> begin(size, 0), end(size, 0);
      plain.training->batch(sample, 1, inputs.data(), targets.data());
      if (plain.training->has_documents())
        plain.training->documents(sample, 1, inputs.data(), begin.data(), end.data());
      fish.training->batch(sample, 1, got_inputs.data(), got.data());
      Index left = 0;
      for (Index i = 0; i < sequence; ++i) {
        all += targets[i] >= 0;
        Tokens before;
        for (Index at = std::max<Index>(begin[i], i + 1 - deck.goldfish_h); at <= i; ++at)
          before.push_back(inputs[at]);
        if (std::ssize(before) == deck.goldfish_h &&
            checksum(std::as_bytes(std::span(before))) < ~0ULL / deck.goldfish_k)
          targets[i] = -1;
        left += targets[i] >= 0;
      }
      EXPECT_EQ(got_inputs, inputs);
      EXPECT_EQ(got, targets) << sample;
      EXPECT_EQ(fish.training->targets(sample, 1), left);
      kept += left;
    }
    EXPECT_EQ(fish.training->targets(0, 20), kept);
    EXPECT_LT(kept, all);
    EXPECT_GT(kept, all / 2);
    if (plain.validation) {
      EXPECT_FALSE(fish.validation->counts_by_reading());
      EXPECT_EQ(fish.validation->targets(0, 1), plain.validation->targets(0, 1));
    }
  }

  TemporaryFolder folder_;
};

TEST_F(GoldfishData, TargetsOfStreamsAreCountedAfterTheDrop) {
  deck::Data deck;
  const std::string path = folder_.path() / "bytes";
  {
    std::ofstream file(path, std::ios::binary);
    for (const Token token : mixed_tokens(2000)) file.put(static_cast<char>(token));
  }
  deck.files = {path};
  deck.goldfish_k = 3, deck.goldfish_h = 4;
  deck.validation_fraction = 0.1;
  check(deck, 30);
  deck.end_token = 10;
  check(deck, 30);
}

TEST_F(GoldfishData, TargetsOfDocumentsAreCountedAfterTheDrop) {
  std::vector<Document> documents;
  for (Index i = 0; i < 60; ++i) {
    Document document;
    document.tokens = mixed_tokens(1 + (i * 7) % 23);
    for (Index at = 0; at < document.size(); ++at) document.targets.push_back(at % 5 > 0 ? 1 : 0);
    documents.push_back(document);
  }
  deck::Data deck;
  deck.format = deck::DataFormat::documents;
  deck.files = {DocumentNumbers(documents).write(folder_.path() / "some.docs")};
  deck.goldfish_k = 4, deck.goldfish_h = 3;
  deck.validation_fraction = 0.1;
  check(deck, 30);
}

}  // namespace
}  // namespace kzero::tests
