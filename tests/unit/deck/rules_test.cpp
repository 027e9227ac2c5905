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

TEST(Resolve, shares_the_common_divisor_of_all_batches) {
  Config config;
  config.train.global_batch = 8;
  config.train.phases = {{.from_step = 10, .global_batch = 12},
                         {.from_step = 20, .global_batch = 20}};
  resolve(config, {.ranks = 2});
  EXPECT_EQ(config.train.micro_batch, 2);
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

/// Calls check(config) with many batches, grids and modes that depend on the ranks.
template <class F>
void with_configs(const F& check) {
  for (const Index batch : {1, 4, 6, 16}) {
    for (const Index micro : {0, 1, 3, 4, 32}) {
      for (const Index tensor : {1, 2, 3, 4}) {
        for (const Index data : {0, 1, 2, 4}) {
          for (const Index stage : {0, 2}) {
            Config config;
            config.train.global_batch = batch;
            config.train.micro_batch = micro;
            config.model.hidden = 64;
            config.model.heads = 4;
            config.grid.tensor = tensor;
            config.grid.data = data;
            config.zero.stage = stage;
            config.zero.accumulate = Accumulate::local;
            check(config);
          }
        }
      }
    }
  }
}

TEST(Resolve, refuses_without_ranks_exactly_what_no_number_of_ranks_can_mend) {
  int accepted = 0, refused = 0;
  with_configs([&](const Config& config) {
    bool can_run = false;
    for (Index ranks = 1; ranks <= 64 && !can_run; ++ranks)
      can_run = message_of(config, {.ranks = ranks}).empty();
    const std::string message = message_of(config);
    EXPECT_EQ(message.empty(), can_run)
        << message << " batch " << config.train.global_batch << ", micro "
        << config.train.micro_batch << ", grid " << config.grid.data << " x " << config.grid.tensor
        << ", stage " << config.zero.stage;
    ++(can_run ? accepted : refused);
  });
  EXPECT_GT(accepted, 100);
  EXPECT_GT(refused, 100);
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
  config.run.max_steps = 5;
  EXPECT_EQ(message_of(config, {.ranks = 0, .purpose = Purpose::train}),
            "configuration: optimizer.warmup must be at most train.steps = 100, found 1000\n"
            "configuration: data.files must name the files to train on, found none\n"
            "configuration: run.max_steps = 5 needs checkpoint.folder");
}

TEST(Resolve, refuses_what_experts_do_not_compute) {
  Config config;
  Model& m = config.model;
  m.family = ModelFamily::mixtral;
  EXPECT_EQ(message_of(config),
            "configuration: model.family = \"mixtral\" needs model.experts above 0");
  m.family = ModelFamily::llama;
  m.experts_per_token = 2, m.router_aux_loss = 0.5;
  EXPECT_EQ(message_of(config),
            "configuration: model.experts_per_token = 2 needs model.experts above 0\n"
            "configuration: model.router_aux_loss = 0.5 needs model.experts above 0");
  m.experts = 8, m.experts_per_token = 9;
  EXPECT_EQ(message_of(config),
            "configuration: model.experts_per_token must be from 1 to model.experts = 8, found 9");
  m.experts_per_token = 0;
  EXPECT_EQ(message_of(config),
            "configuration: model.experts_per_token must be from 1 to model.experts = 8, found 0");
  m.experts_per_token = 8;
  EXPECT_EQ(message_of(config), "");
  m.dropout = 0.5, m.residual_scale = 0.25;
  config.train.tile_rows = 16, config.train.sequence_chunks = 2, config.train.micro_batch = 1;
  EXPECT_EQ(message_of(config),
            "configuration: train.tile_rows must be 0 with model.experts = 8, found 16: experts "
            "compute the rows of a complete micro-batch\n"
            "configuration: model.dropout must be 0 with model.experts = 8, found 0.5\n"
            "configuration: model.residual_scale must be 1 with model.experts = 8, found 0.25\n"
            "configuration: model.router_aux_loss and model.router_z_loss must be 0 with "
            "train.sequence_chunks = 2, found 0.5 and 0: they are means over a complete "
            "micro-batch");
}

TEST(Resolve, checks_the_balance_of_experts) {
  Config config;
  Model& m = config.model;
  m.family = ModelFamily::llama;
  m.experts = 8, m.experts_per_token = 2;
  m.router_bias_rate = 0.01;
  EXPECT_EQ(message_of(config),
            "configuration: model.router_bias_rate = 0.01 needs model.router_bias = true");
  m.router_bias = true;
  EXPECT_EQ(message_of(config), "");
  m.router_score = RouterScore::sigmoid;
  m.router_z_loss = 0.5;
  EXPECT_EQ(message_of(config),
            "configuration: model.router_aux_loss and model.router_z_loss must be 0 with "
            "model.router_score = \"sigmoid\", found 0 and 0.5: model.router_bias = true balances "
            "experts without a loss");
  m.router_z_loss = 0;
  config.lora.rank = 4, config.lora.targets = {"q_proj"};
  EXPECT_EQ(message_of(config),
            "configuration: model.router_bias_rate must be 0 with lora.rank = 4, found 0.01: the "
            "model's own parameters do not change");
  m.router_bias_rate = 0;
  EXPECT_EQ(message_of(config), "");
  config.lora = {};
  m.router_bias_rate = 0.001;
  m.experts = 0, m.experts_per_token = 0;
  EXPECT_EQ(message_of(config),
            "configuration: model.router_score = \"sigmoid\" needs model.experts above 0\n"
            "configuration: model.router_bias = true needs model.experts above 0");
}

TEST(Resolve, lets_tensor_ranks_split_every_expert) {
  Config config;
  Model& m = config.model;
  m.family = ModelFamily::mixtral;
  m.heads = 8, m.experts = 4, m.experts_per_token = 2, m.feed_forward = 3;
  config.train.global_batch = 8;
  config.grid.tensor = 4;
  EXPECT_EQ(message_of(config, {.ranks = 4}),
            "configuration: grid.tensor must be at most model.feed_forward = 3, found 4");
  m.feed_forward = 5;
  EXPECT_EQ(message_of(config, {.ranks = 4}), "");
}

TEST(Resolve, refuses_adapters_of_experts) {
  Config config;
  Model& m = config.model;
  m.family = ModelFamily::llama, m.initial = "weights";
  m.experts = 4, m.experts_per_token = 2;
  config.lora = {.rank = 2, .targets = {"q_proj", "up_proj"}};
  EXPECT_EQ(message_of(config),
            "configuration: lora.targets: \"up_proj\" is not a linear layer of the model; "
            "model.family = \"llama\" with model.experts has q_proj, k_proj, v_proj, o_proj, or "
            "\"all-linear\" for all of them");
}

TEST(Resolve, refuses_to_check_a_replay_without_a_record_of_it) {
  Config config;
  config.data.files = {"text"};
  config.run.replay = Replay::check;
  EXPECT_EQ(message_of(config, {.ranks = 1, .purpose = Purpose::train}),
            "configuration: run.replay = \"check\" needs checkpoint.folder\n"
            "configuration: run.replay = \"check\" needs run.metrics");
  config.checkpoint.folder = "saved", config.run.metrics = "metrics.jsonl";
  resolve(config, {.ranks = 1, .purpose = Purpose::train});
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
