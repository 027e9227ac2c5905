// A checkpoint saved on one grid is loaded bit for bit on any other: all combinations of data and
// tensor ranks, stages and precisions, with more or fewer ranks.
#include <gtest/gtest.h>
#include <mpi.h>

#include "support/checkpoints.hpp"
#include "support/full_state.hpp"

namespace kzero::tests {
namespace {

struct Side {
  int ranks;
  Index tensor;
  Index stage;
  Dtype precision = Dtype::fp32;
  bool sequence_parallel = false;
  Index batch = 12;
  Index kv_heads = 0;  // above 0: Llama
  Index node = 0;      // above 0: ranks of a node, which share a copy of the parameters
};

std::string describe(const Side& side) {
  return std::to_string(side.ranks / side.tensor) + " x " + std::to_string(side.tensor) +
         " stage " + std::to_string(side.stage) + " " + std::string(name_of(side.precision)) +
         (side.node > 0 ? ", " + std::to_string(side.node) + " ranks a node" : "");
}

deck::Config deck_of(const Side& side) {
  deck::Config config = small_deck(side.precision);
  config.model.heads = 4, config.model.hidden = 20, config.model.feed_forward = 37;
  config.model.layers = 2, config.model.sequence_parallel = side.sequence_parallel;
  config.train.global_batch = side.batch, config.train.micro_batch = 0;
  config.grid.tensor = side.tensor, config.zero.stage = side.stage;
  config.grid.node = side.node;
  if (side.node > 0) config.zero.parameters = deck::SharesParameters::node;
  return side.kv_heads > 0 ? as_llama(config, side.kv_heads) : config;
}

class Reshard : public testing::Test {
 protected:
  /// Saves after three steps, loads, and runs one more step on both sides.
  void expect_moves(const Side& from, const Side& to) {
    SCOPED_TRACE(describe(from) + " to " + describe(to));
    const grid::Group saving = first_ranks(from.ranks), loading = first_ranks(to.ranks);
    const auto path = folder.path() / std::to_string(number++);
    FullState saved;
    double loss = 0;
    if (is_among_first(from.ranks)) {
      Training training(deck_of(from), saving);
      training.engine->initialise({});
      training.run(0, 3);
      save(training, saving, path, 3);
      saved = full_state(training.engine->owned_shards(), world);
      loss = training.step(3).loss;
    } else {
      saved = full_state({}, world);
    }
    world.barrier();
    MPI_Bcast(&loss, 1, MPI_DOUBLE, 0, world.handle());
    FullState loaded;
    if (is_among_first(to.ranks)) {
      Training training(deck_of(to), loading);
      ASSERT_EQ(load(training, loading, path), 3);
      loaded = full_state(training.engine->owned_shards(), world);
      for (const checkpoint::StateShard& shard : HostShards(training.engine->local_shards()))
        EXPECT_TRUE(agrees(shard, saved)) << shard.parameter;
      const double found = training.step(3).loss;
      const double tolerance =
          from.precision == Dtype::fp32 && to.precision == Dtype::fp32 ? 1e-6 : 2e-2;
      EXPECT_NEAR(found, loss, tolerance * loss);
    } else {
      loaded = full_state({}, world);
    }
    EXPECT_TRUE(same_bits(loaded, saved));
  }

  const grid::Group world = first_ranks(launch_ranks());
  const SharedFolder folder{world};
  int number = 0;
};

TEST_F(Reshard, OnTheRanksOfTheLaunch) {
  const int all = launch_ranks();
  if (all != 4) GTEST_SKIP() << "these grids are of four ranks";
  expect_moves({4, 1, 2}, {4, 2, 2});
  expect_moves({4, 2, 3}, {4, 1, 0});
  expect_moves({4, 4, 0}, {4, 2, 3});
  expect_moves({4, 2, 1}, {4, 4, 2, Dtype::fp32, true});
  expect_moves({4, 4, 2, Dtype::fp32, true}, {1, 1, 0});
  expect_moves({1, 1, 3}, {4, 2, 3, Dtype::bf16});
  expect_moves({4, 2, 2, Dtype::bf16}, {2, 2, 1, Dtype::fp16});
  expect_moves({2, 2, 3, Dtype::fp16}, {3, 1, 3});
  expect_moves({3, 1, 3}, {4, 4, 1});
  expect_moves({2, 1, 0}, {2, 2, 3});
  expect_moves({4, 1, 3}, {3, 1, 1, Dtype::bf16});
  expect_moves({2, 2, 0, Dtype::fp32, true}, {4, 2, 3});
}

TEST_F(Reshard, OfParametersThatNodesShare) {
  const int all = launch_ranks();
  if (all != 4) GTEST_SKIP() << "these grids are of four ranks";
  const Side shared{.ranks = 4, .tensor = 1, .stage = 3, .node = 2};
  expect_moves(shared, {4, 2, 3});
  expect_moves({3, 1, 2}, shared);
  expect_moves({.ranks = 4, .tensor = 1, .stage = 3, .precision = Dtype::bf16, .node = 1}, shared);
}

// Four tensor ranks hold copies of two KV heads, which are stored once.
TEST_F(Reshard, OfLlamaWithCopiesOfKeysAndValues) {
  const int all = launch_ranks();
  if (all != 4) GTEST_SKIP() << "these grids are of four ranks";
  const auto move = [this](Side from, Side to) {
    from.kv_heads = to.kv_heads = 2;
    expect_moves(from, to);
  };
  move({1, 1, 0}, {4, 4, 3});
  move({4, 4, 1, Dtype::bf16}, {4, 2, 2});
  move({4, 2, 3, Dtype::fp32, true}, {4, 4, 0, Dtype::fp16});
  move({4, 4, 2}, {3, 1, 3});
}

TEST_F(Reshard, OnOddAndPrimeNumbersOfRanks) {
  const int all = launch_ranks();
  if (all != 7) GTEST_SKIP() << "these grids are of up to seven ranks";
  const auto move = [this](Side from, Side to, Index batch) {
    from.batch = to.batch = batch;
    expect_moves(from, to);
  };
  move({3, 1, 3}, {5, 1, 2}, 15);
  move({7, 1, 3}, {2, 2, 1}, 14);
  move({6, 2, 2}, {7, 1, 0}, 21);
}

}  // namespace
}  // namespace kzero::tests
