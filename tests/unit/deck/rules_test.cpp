#include "deck/rules.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "base/error.hpp"

namespace kzero::deck {
namespace {

std::string message_of(Config config, const Target& target = {}) {
  try {
    resolve(config, target);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Resolve, fills_in_what_follows_from_other_values) {
  Config config;
  config.train.global_batch = 12;
  resolve(config, {.ranks = 4});
  EXPECT_EQ(config.model.feed_forward, 512);
  EXPECT_EQ(config.grid.data, 4);
  EXPECT_EQ(config.train.micro_batch, 3);
}

TEST(Resolve, leaves_the_grid_open_while_ranks_are_unknown) {
  Config config;
  resolve(config, {});
  EXPECT_EQ(config.grid.data, 0);
  EXPECT_EQ(config.train.micro_batch, 0);
  resolve(config, {.ranks = 2});
  EXPECT_EQ(config.grid.data, 2);
}

TEST(Resolve, changes_nothing_the_second_time) {
  Config config;
  config.model.feed_forward = 100;
  config.train.micro_batch = 2;
  resolve(config, {.ranks = 2});
  EXPECT_EQ(config.model.feed_forward, 100);
  EXPECT_EQ(config.train.micro_batch, 2);
  resolve(config, {.ranks = 2});
  EXPECT_EQ(config.grid.data, 2);
}

TEST(Resolve, refuses_values_out_of_range) {
  Config config;
  config.model.heads = 0;
  config.optimizer.lr = std::numeric_limits<double>::quiet_NaN();
  config.train.seed = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(message_of(config),
            "configuration: model.heads must be an integer from 1 to 10000\n"
            "configuration: train.seed must be an integer from 0 to 9007199254740992\n"
            "configuration: optimizer.lr must be a number from 0 to 1000");
}

TEST(Resolve, reports_every_broken_rule) {
  Config config;
  config.optimizer.warmup = 1000;
  config.checkpoint.every = 5;
  EXPECT_EQ(message_of(config, {.ranks = 0, .purpose = Purpose::train}),
            "configuration: optimizer.warmup must be at most train.steps = 100, found 1000\n"
            "configuration: data.files must name the files to train on, found none\n"
            "configuration: checkpoint.every = 5 needs checkpoint.folder");
}

TEST(Resolve, allows_any_min_lr_with_a_constant_schedule) {
  Config config;
  config.optimizer.lr = 1e-6;
  EXPECT_NE(message_of(config), "");
  config.optimizer.schedule = Schedule::constant;
  EXPECT_EQ(message_of(config), "");
}

}  // namespace
}  // namespace kzero::deck
