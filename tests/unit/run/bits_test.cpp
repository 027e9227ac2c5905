#include "run/bits.hpp"

#include <gtest/gtest.h>

#include <fmt/ranges.h>

#include "deck/changes.hpp"
#include "deck/rules.hpp"
#include "deck/writer.hpp"

namespace kzero::run {
namespace {

deck::Config config_of(Index ranks) {
  deck::Config config;
  config.train.micro_batch = 1;
  config.data.files = {"text"};
  deck::resolve(config, {.ranks = ranks, .purpose = deck::Purpose::plan});
  return config;
}

/// The changes that prevent `now` from resuming bit for bit from a checkpoint of `before`.
std::string changes(const deck::Config& before, const deck::Config& now,
                    const std::string& arithmetic = "loops") {
  checkpoint::Manifest saved;
  saved.deck = deck::resolved(before);
  saved.arithmetic = "loops";
  saved.data_digest = 5;
  const auto found = bit_changes(saved, deck::changes(saved.deck, deck::resolved(now)), now,
                                 {.data_digest = 5, .arithmetic = arithmetic});
  return fmt::format("{}", fmt::join(found, "; "));
}

TEST(Bits, DoNotDependOnRanksStagesAndWhatIsKeptWhere) {
  const deck::Config before = config_of(1);
  deck::Config now = config_of(4);
  now.zero.stage = 3, now.zero.bucket = 1000, now.zero.prefetch_units = 7;
  now.zero.overlap = deck::Overlap::on;
  now.recompute.mode = deck::RecomputeMode::full;
  now.checkpoint.every = 3, now.run.threads = 2, now.train.validate_every = 9;
  EXPECT_EQ(changes(before, now), "");
  EXPECT_TRUE(rank_dependence(now).empty());
}

TEST(Bits, DependOnWhatDecidesASum) {
  const deck::Config before = config_of(2);
  const auto changed = [&](auto change) {
    deck::Config now = before;
    change(now);
    return changes(before, now);
  };
  EXPECT_EQ(changed([](auto& c) { c.train.micro_batch = 2; }), "train.micro_batch is 2, was 1");
  EXPECT_EQ(changed([](auto& c) { c.grid.tensor = 2; }), "grid.tensor is 2, was 1");
  EXPECT_EQ(changed([](auto& c) { c.train.precision = Dtype::bf16; }),
            "train.precision is \"bf16\", was \"fp32\"");
  EXPECT_EQ(changed([](auto& c) { c.optimizer.lr = 1; }), "optimizer.lr is 1.0, was 0.0003");
  EXPECT_EQ(changed([](auto& c) { c.zero.accumulate = deck::Accumulate::local; }),
            "zero.accumulate is \"local\", was \"reduced\"");
  EXPECT_EQ(changed([](auto& c) { c.run.deterministic = false; }), "run.deterministic is false");
  EXPECT_EQ(changed([](auto& c) { c.train.steps = 7; }), "train.steps is 7, was 100");
  EXPECT_EQ(changes(before, before, "fast loops"), "it computes with fast loops, was loops");
}

TEST(Bits, DependOnTermsThatOnlyTrainingHas) {
  deck::Config before = config_of(2);
  const auto changed = [&](auto change) {
    deck::Config now = before;
    change(now);
    return changes(before, now);
  };
  EXPECT_EQ(changed([](auto& c) { c.train.z_loss = 0.5; }), "train.z_loss is 0.5, was 0.0");
  EXPECT_EQ(changed([](auto& c) { c.model.dropout = 0.5; }), "model.dropout is 0.5, was 0.0");
  // The seed decides on the masks. The initial weights and the data have been read already.
  EXPECT_EQ(changed([](auto& c) { c.train.seed = 9; }), "");
  before.model.dropout = 0.5;
  EXPECT_EQ(changed([](auto& c) { c.train.seed = 9; }), "train.seed is 9, was 1");
}

TEST(Bits, DependOnTheNumberOfRanksWhereTheDeckAsksForIt) {
  deck::Config before = config_of(1), now = config_of(2);
  before.zero.accumulate = now.zero.accumulate = deck::Accumulate::local;
  EXPECT_EQ(changes(before, now), "grid.data is 2, was 1");
  EXPECT_EQ(bits_depend_on(now, "loops").back(),
            "the 2 data-parallel ranks because of zero.accumulate = \"local\"");
  EXPECT_EQ(bits_depend_on(config_of(2), "loops").back(), "loops");
  now = config_of(2);
  now.run.deterministic = false;
  EXPECT_EQ(bits_depend_on(now, "loops").back(),
            "the order in which the GPU adds gradients of attention");
}

TEST(Bits, DependOnOtherBatchesFromTheFirstStepThatHasThem) {
  deck::Config before = config_of(1);
  before.train.phases = {{10, 12}, {20, 16}};
  const auto first = [&](Index step, const deck::Config& now) {
    checkpoint::Manifest saved;
    saved.deck = deck::resolved(before);
    saved.step = step;
    const auto changes = deck::changes(saved.deck, deck::resolved(now));
    EXPECT_EQ(bit_changes(saved, changes, now, {}).empty(), first_other_batch(saved, now) != step);
    return first_other_batch(saved, now);
  };
  EXPECT_EQ(first(5, before), std::nullopt);
  deck::Config now = before;
  now.train.global_batch = 4;
  EXPECT_EQ(first(5, now), 5);
  EXPECT_EQ(first(9, now), 9);
  EXPECT_EQ(first(10, now), std::nullopt) << "steps that are over";
  now = before;
  now.train.phases[1].global_batch = 20;
  EXPECT_EQ(first(5, now), 20);
  EXPECT_EQ(first(30, now), 30);
  EXPECT_EQ(first(100, now), std::nullopt) << "no step is left";
  now.train.phases = {{10, 12}};
  EXPECT_EQ(first(5, now), 20) << "a phase that is gone";
  now.train.phases = {{10, 12}, {15, 12}, {20, 16}};
  EXPECT_EQ(first(5, now), std::nullopt) << "other tables, the same sizes";
  before.train.phases.clear();
  now = before;
  now.train.phases = {{50, 16}};
  EXPECT_EQ(first(5, now), 50);
}

TEST(Bits, HaveADigestOfWhatTheyDependOn) {
  const auto digest = [](const deck::Config& config, const std::string& arithmetic = "loops",
                         std::uint64_t data = 5) {
    return bits_digest(deck::resolved(config), config, {data, arithmetic});
  };
  const deck::Config before = config_of(2);
  deck::Config now = config_of(4);
  now.zero.stage = 3, now.run.verify_every = 7, now.checkpoint.every = 3;
  EXPECT_EQ(digest(now), digest(before));
  EXPECT_NE(digest(before, "fast loops"), digest(before));
  EXPECT_NE(digest(before, "loops", 6), digest(before));
  now.train.phases = {{50, 16}};
  EXPECT_EQ(digest(now), digest(before)) << "replay compares sizes step by step";
  now.optimizer.lr = 1;
  EXPECT_NE(digest(now), digest(before));
  deck::Config one = config_of(1), two = config_of(2);
  one.zero.accumulate = two.zero.accumulate = deck::Accumulate::local;
  EXPECT_NE(digest(one), digest(two));
}

}  // namespace
}  // namespace kzero::run
