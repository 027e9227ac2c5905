#include "data/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "token_files.hpp"

namespace kzero::data {
namespace {

class Datasets : public TokenFiles {
 protected:
  /// A source whose tokens identify it: `first`, first + 1, ..., in 16 bits.
  deck::BlendSource source(const std::string& name, Index first, Index tokens,
                           double weight) const {
    std::vector<std::uint16_t> stored(static_cast<std::size_t>(tokens));
    for (Index i = 0; i < tokens; ++i)
      stored[static_cast<std::size_t>(i)] = static_cast<std::uint16_t>(first + i);
    return {name, {write_llmc(name + ".bin", stored)}, weight};
  }

  deck::Data blend_of_two() const {
    deck::Data deck;
    deck.format = DataFormat::llmc;
    deck.blend = {source("large", 0, 401, 3), source("small", 10000, 41, 1)};  // 100 and 10 windows
    return deck;
  }

  /// The first token of a sample.
  static Token first_token(const BatchSource& samples, Index sample) {
    std::vector<Token> inputs(4), targets(4);
    samples.batch(sample, 1, inputs.data(), targets.data());
    for (std::size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(inputs[i], inputs[0] + static_cast<Token>(i));
      EXPECT_EQ(targets[i], inputs[i] + 1);
    }
    return inputs[0];
  }

  static Dataset opened(const deck::Data& deck) { return open_dataset(deck, 4, 20000, 7); }
};

TEST_F(Datasets, ABlendGoesThroughEachSourceInEpochsOfItsOwn) {
  const Dataset data = opened(blend_of_two());
  std::map<Token, Index> times;
  for (Index sample = 0; sample < 400; ++sample) ++times[first_token(*data.training, sample)];
  EXPECT_EQ(times.size(), 110U);
  for (const auto& [token, count] : times)
    EXPECT_EQ(count, token < 10000 ? 3 : 10) << token;  // 300 samples of 100 windows, 100 of 10
  EXPECT_EQ(data.training->windows(), 110);
  EXPECT_EQ(data.training->share(0), 0.75);
  EXPECT_EQ(data.training->epochs(1, 400), 10);
  EXPECT_FALSE(data.training->repeats(40));
  EXPECT_TRUE(data.training->repeats(44));
}

TEST_F(Datasets, ABlendsBatchDoesNotDependOnHowItIsSplit) {
  const Dataset data = opened(blend_of_two());
  std::vector<Token> inputs(400), targets(400);
  data.training->batch(1000017, 100, inputs.data(), targets.data());
  for (Index i = 0; i < 100; ++i)
    EXPECT_EQ(first_token(*data.training, 1000017 + i), inputs[static_cast<std::size_t>(4 * i)]);
}

TEST_F(Datasets, ABlendOfOneSourceIsThatSource) {
  deck::Data blend = blend_of_two(), plain = blend;
  blend.blend.resize(1);
  plain.files = blend.blend[0].files;
  plain.blend.clear();
  const Dataset a = opened(blend), b = opened(plain);
  for (Index sample = 0; sample < 250; ++sample)
    EXPECT_EQ(first_token(*a.training, sample), first_token(*b.training, sample));
  EXPECT_EQ(a.training_digest(), b.training_digest());
}

TEST_F(Datasets, ValidationTakesTheEndOfEverySource) {
  deck::Data deck = blend_of_two();
  deck.validation_fraction = 0.2;
  const Dataset data = opened(deck);
  ASSERT_NE(data.validation, nullptr);
  EXPECT_EQ(data.validation->windows(), 22);
  std::map<bool, Index> of_small;
  for (Index sample = 0; sample < 8; ++sample) {
    const Token token = first_token(*data.validation, sample);
    EXPECT_GE(token, token < 10000 ? 320 : 10032);
    ++of_small[token >= 10000];
  }
  EXPECT_EQ(of_small[true], 2) << "in the proportion of the weights";
  for (Index sample = 0; sample < 400; ++sample) {
    const Token token = first_token(*data.training, sample);
    EXPECT_LT(token, token < 10000 ? 320 : 10032) << "kept from training";
  }
}

TEST_F(Datasets, TheDigestSeesWeightsAndSources) {
  const deck::Data deck = blend_of_two();
  const std::uint64_t digest = opened(deck).training_digest();
  EXPECT_EQ(opened(deck).training_digest(), digest);
  deck::Data scaled = deck;
  for (deck::BlendSource& source : scaled.blend) source.weight *= 2;
  EXPECT_EQ(opened(scaled).training_digest(), digest) << "the proportion is the same";
  deck::Data heavier = deck;
  heavier.blend[0].weight = 4;
  EXPECT_NE(opened(heavier).training_digest(), digest);
  deck::Data turned = deck;
  std::swap(turned.blend[0], turned.blend[1]);
  EXPECT_NE(opened(turned).training_digest(), digest);
  deck::Data fewer = deck;
  fewer.blend.pop_back();
  EXPECT_NE(opened(fewer).training_digest(), digest);
}

TEST_F(Datasets, FaultsOfSourcesAndEvaluationsAreAllNamed) {
  deck::Config config;
  config.data = blend_of_two();
  config.data.blend.push_back({"short", {write_llmc("short.bin", {1, 2})}, 1});
  config.model.sequence = 4, config.model.vocab = 20000;
  ProblemList short_one;
  open_dataset(config, short_one);
  ASSERT_EQ(short_one.problems().size(), 1U) << short_one.text();
  EXPECT_EQ(short_one.text().find("data.blend[2].files: the files hold 2 tokens, but one sample of "
                                  "model.sequence = 4 needs 5"),
            0U)
      << short_one.text();

  config.data.blend[2].files = {path("absent.bin")};
  config.evaluate = {{"a", {path("missing.bin")}, DataFormat::llmc}};
  ProblemList absent;
  open_dataset(config, absent);
  EXPECT_EQ(absent.problems().size(), 2U) << absent.text();
}

TEST_F(Datasets, EvaluationsReadInOrderAndAllThereIs) {
  deck::Config config;
  config.data = blend_of_two();
  config.model.sequence = 4, config.model.vocab = 20000;
  config.train.global_batch = 6, config.train.micro_batch = 3;
  const std::string file = source("held_out", 5000, 45, 1).files[0];  // 11 windows
  config.evaluate = {{"all", {file}, DataFormat::llmc, 0, 5, 0},
                     {"two batches", {file}, DataFormat::llmc, 0, 0, 2}};
  ProblemList problems;
  const Dataset data = open_dataset(config, problems);
  ASSERT_TRUE(problems.empty()) << problems.text();
  ASSERT_EQ(data.evaluations.size(), 2U);
  EXPECT_EQ(data.evaluations[0].micro_batches, 3) << "whole micro-batches of the 11";
  EXPECT_EQ(data.evaluations[0].every, 5);
  EXPECT_EQ(data.evaluations[1].micro_batches, 4);
  for (Index sample = 0; sample < 11; ++sample)
    EXPECT_EQ(first_token(*data.evaluations[0].samples, sample), 5000 + 4 * sample);

  config.train.micro_batch = 12, config.train.global_batch = 12;
  ProblemList too_few;
  open_dataset(config, too_few);
  EXPECT_EQ(too_few.text(),
            "evaluate[0].files: the files hold 11 sequences of model.sequence + 1 tokens, fewer "
            "than train.micro_batch = 12; give more data");
  config.model.vocab = 5000, config.train.micro_batch = 1;
  config.data.blend.pop_back();
  ProblemList beyond;
  const Dataset small = open_dataset(config, beyond);
  small.check_tokens(0, 1, beyond);
  EXPECT_EQ(beyond.text().find(file + ": token 0 (counted from 0) is 5000"), 0U) << beyond.text();
}

}  // namespace
}  // namespace kzero::data
