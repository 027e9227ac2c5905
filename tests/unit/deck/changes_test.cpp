#include "deck/changes.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "deck/config.hpp"
#include "deck/schema.hpp"
#include "deck/writer.hpp"

namespace kzero::deck {
namespace {

using Texts = std::vector<std::string>;

TEST(Changes, AreNoneBetweenADeckAndItself) {
  EXPECT_EQ(changes(resolved({}), resolved({})), Texts{});
}

TEST(Changes, NameKeyAndBothValuesInTheOrderOfDecks) {
  Config config;
  const std::string before = resolved(config);
  config.train.steps = 200;
  config.zero.stage = 3;
  config.run.stop_file = "stop me";
  EXPECT_EQ(changes(before, resolved(config)),
            (Texts{"zero.stage is 3, was 2", "train.steps is 200, was 100",
                   "run.stop_file is \"stop me\", was \"\""}));
}

// A long list has one line per element. Only the last line differs here.
TEST(Changes, ReachTheEndOfLongLists) {
  Config config;
  for (int i = 0; i < 20; ++i)
    config.data.files.push_back("a/long/name/of/part" + std::to_string(i));
  const std::string before = resolved(config);
  config.data.files.back() = "another";
  const Texts found = changes(before, resolved(config));
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].find("data.files is ["), 0U) << found[0];
  EXPECT_EQ(found[0].find('\n'), std::string::npos) << "a note is one line";
}

TEST(Changes, PassOverWhatFollowsFromAnotherChange) {
  Config before, now;
  before.optimizer.kind = OptimizerKind::ademamix;
  before.optimizer.slow_warmup = 12;
  EXPECT_EQ(changes(resolved(before), resolved(now)),
            (Texts{"optimizer.kind is \"adamw\", was \"ademamix\""}));
  now = before;
  now.optimizer.slow_warmup = 6;
  EXPECT_EQ(changes(resolved(before), resolved(now)),
            (Texts{"optimizer.slow_warmup is 6, was 12"}));
}

TEST(Changes, PassOverKeysOfOneDeckAloneAndDecksThatAreNone) {
  EXPECT_EQ(changes("[train]\ncharm = 3\nsteps = 7\n", "[train]\nsteps = 7\nseed = 2\n"), Texts{});
  EXPECT_EQ(changes("\x01 no deck", resolved({})), Texts{});
  EXPECT_EQ(changes("", resolved({})), Texts{});
}

// Digests of existing runs leave these keys out (run::bits_digest).
TEST(Changes, ChangeBitsExceptInTheseKeys) {
  Texts found;
  for (const std::string& table : tables()) {
    Texts same_bits;
    bool has_others = false;
    for (const Key& key : keys()) {
      if (key.table() != table) continue;
      if (key.changes_bits) has_others = true;
      if (!key.changes_bits) same_bits.push_back(key.path);
    }
    if (!has_others) same_bits = {table + ".*"};
    found.insert(found.end(), same_bits.begin(), same_bits.end());
  }
  EXPECT_EQ(found, (Texts{"model.init_std",
                          "model.initial",
                          "lora.initial",
                          "preference.reference",
                          "distill.file",
                          "grid.node",
                          "zero.stage",
                          "zero.bucket",
                          "zero.prefetch_units",
                          "zero.parameters",
                          "zero.gradients",
                          "zero.offload",
                          "zero.overlap",
                          "recompute.*",
                          "train.validate_every",
                          "train.validation_batches",
                          "optimizer.loss_scale",
                          "optimizer.max_skipped",
                          "data.*",
                          "checkpoint.*",
                          "run.*"}));
  for (const auto* path : {"optimizer.group", "optimizer.group[3].lr_scale", "optimizer.lr",
                           "train.phase", "train.phase[0].global_batch"})
    EXPECT_TRUE(changes_bits(path)) << path;
  for (const auto* path : {"data.blend", "data.blend[1].weight", "evaluate", "evaluate[0].every"})
    EXPECT_FALSE(changes_bits(path)) << path;
}

TEST(Recorded, IsTheConfigOfAResolvedDeck) {
  Config config;
  config.train.steps = 77;
  config.optimizer.schedule = Schedule::wsd;
  config.run.stop_file = "stop";
  const auto found = recorded(resolved(config));
  ASSERT_TRUE(found);
  EXPECT_EQ(resolved(*found), resolved(config));
  config.train.phases = {{3, 8}, {5, 16}};
  EXPECT_EQ(resolved(recorded(resolved(config)).value_or(Config())), resolved(config));
}

TEST(Recorded, PassesOverWhatIsNoLongerAllowed) {
  const auto found =
      recorded("[train]\ncharm = 3\nsteps = -1\nseed = 8\n[[data.blend]]\nweight = 2\n");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->train.steps, Config{}.train.steps);
  EXPECT_EQ(found->train.seed, 8);
  EXPECT_TRUE(found->data.blend.empty());
  EXPECT_FALSE(recorded("\x01 no deck"));
  EXPECT_FALSE(recorded(""));
}

TEST(Settings, AreAllKeysOfADeckInItsOrder) {
  EXPECT_EQ(settings("[train]\ncharm = 3\nsteps = 7\n[zero]\nstage = 3\n"),
            (Texts{"zero.stage is 3", "train.steps is 7"}));
  EXPECT_EQ(settings("\x01 no deck"), Texts{});
  EXPECT_EQ(settings("[[optimizer.group]]\nmatch = '*bias'\n[[optimizer.group]]\nlr_scale = 2\n"),
            (Texts{"optimizer.group[0].match is \"*bias\"", "optimizer.group[1].lr_scale is 2.0"}));
}

}  // namespace
}  // namespace kzero::deck
