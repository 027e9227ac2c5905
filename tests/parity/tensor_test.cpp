// Tensor parallelism: the same model on every grid, the same bits in every stage and recompute mode
// of one grid, and memory and traffic as planned.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>

#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "support/host_shards.hpp"
#include "support/outcome.hpp"
#include "support/same_bits.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

using deck::Offload;
using deck::Recompute;
using deck::RecomputeMode;

/// Eight heads. The other split sizes do not divide evenly, so the ranks' parts differ.
deck::Config split_deck(Index tensor, Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.model.heads = 8, config.model.hidden = 24, config.model.feed_forward = 53;
  config.model.layers = 2;
  config.grid.tensor = tensor;
  config.train.global_batch = 2 * launch_ranks() / tensor;  // two micro-batches
  config.optimizer.clip = 0.5;
  return config;
}

/// Two KV heads, copied if there are four or more tensor ranks.
deck::Config split_llama(Index tensor, Dtype precision = Dtype::fp32) {
  return as_llama(split_deck(tensor, precision), 2);
}

/// Tensor-parallel sizes above 1 of a launch.
std::vector<Index> tensor_sizes() {
  std::vector<Index> sizes;
  for (Index tensor = 2; tensor <= launch_ranks() && tensor <= 8; tensor *= 2) {
    if (launch_ranks() % tensor == 0 && !(tensor == 2 && has_few_cores())) sizes.push_back(tensor);
  }
  return sizes;
}

const std::vector<Recompute> recompute_modes{
    {.mode = RecomputeMode::layernorm_gelu},
    {.mode = RecomputeMode::full},
    {.mode = RecomputeMode::full, .offload = Offload::host},
    {.mode = RecomputeMode::full, .partition = true},
    {.mode = RecomputeMode::full, .partition = true, .offload = Offload::host}};

std::string describe_grid(const deck::Config& c) {
  return "tensor " + std::to_string(c.grid.tensor) + ", stage " + std::to_string(c.zero.stage) +
         ", recompute " + std::string(name_of(c.recompute.mode)) +
         (c.recompute.partition ? ", cut" : "") +
         (c.recompute.offload == Offload::host ? ", host" : "") +
         (c.model.sequence_parallel ? ", sequence parallel" : "") + ", " +
         std::string(name_of(c.model.family)) + (c.model.dropout > 0 ? ", dropout" : "");
}

class TensorParallel : public testing::TestWithParam<Dtype> {
 protected:
  /// Compares stages, small buckets, overlap and recompute modes with one plain run of the same
  /// grid.
  void expect_same_bits(deck::Config config) {
    const Outcome expected = train_outcome(config, group);
    for (const Index stage : {0, 1, 2, 3}) {
      if (stage != 1 && has_few_cores()) continue;
      config.zero = {.stage = stage,
                     .bucket = 509,
                     .overlap = stage % 2 == 1 ? deck::Overlap::on : deck::Overlap::off};
      expect_same(train_outcome(config, group), expected, describe_grid(config));
    }
    for (const Recompute& recompute : recompute_modes) {
      if (recompute.partition && config.model.sequence_parallel) continue;
      if (recompute.mode == RecomputeMode::layernorm_gelu && has_few_cores()) continue;
      config.zero = {.stage = 3, .bucket = 8191, .prefetch_units = 2};
      config.recompute = recompute;
      expect_same(train_outcome(config, group), expected, describe_grid(config));
    }
  }

  const grid::Group group = first_ranks(launch_ranks());
};

TEST_P(TensorParallel, StagesAndRecomputationGiveTheSameBitsOnAGrid) {
  for (const Index tensor : tensor_sizes()) expect_same_bits(split_deck(tensor, GetParam()));
}

TEST_P(TensorParallel, SoTheyDoInSequenceParallelismAndWithUntiedEmbeddings) {
  for (const Index tensor : tensor_sizes()) {
    deck::Config config = split_deck(tensor, GetParam());
    config.model.sequence_parallel = true, config.model.tied_embeddings = false;
    expect_same_bits(config);
  }
}

TEST_P(TensorParallel, SoTheyDoWithSharedKeysAndValues) {
  for (const Index tensor : tensor_sizes()) {
    deck::Config config = split_llama(tensor, GetParam());
    config.model.sequence_parallel = tensor == 2;
    expect_same_bits(config);
  }
}

TEST_P(TensorParallel, SoTheyDoWithDropoutAndZLoss) {
  for (const Index tensor : tensor_sizes()) {
    deck::Config config = split_deck(tensor, GetParam());
    config.model.dropout = 0.2, config.model.attention_dropout = 0.3;
    config.train.z_loss = 1e-3;
    config.model.sequence_parallel = tensor == 4;
    expect_same_bits(config);
  }
}

INSTANTIATE_TEST_SUITE_P(Precisions, TensorParallel,
                         testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

class Grid : public testing::Test {
 protected:
  void SetUp() override {
    if (tensor_sizes().empty()) GTEST_SKIP() << "one rank has no tensor group";
  }

  const grid::Group group = first_ranks(launch_ranks());
  const grid::Group self = own_rank();

  static grid::Group own_rank() {
    MPI_Comm copy = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_SELF, &copy);
    return {copy, "self"};
  }
};

/// Calls f(values of the shard, the same values of a run on one rank) for every shard of a grid's
/// run.
template <class F>
void compare_with_one_rank(Training& grid, Training& one, const F& f) {
  std::map<std::string, checkpoint::StateShard> whole;
  const HostShards alone(one.engine->local_shards());
  for (const checkpoint::StateShard& shard : alone) whole[shard.parameter] = shard;
  for (const checkpoint::StateShard& shard : HostShards(grid.engine->local_shards())) {
    std::vector<float> expected;
    for (const checkpoint::Range& range : shard.ranges) {
      const auto from =
          whole.at(shard.parameter).values("master").subspan(range.begin, range.count);
      expected.insert(expected.end(), from.begin(), from.end());
    }
    const auto master = shard.values("master");
    f(shard, std::vector<float>(master.begin(), master.end()), expected);
  }
}

// Every grid starts from bitwise the same model and stays close to it within rounding.
TEST_F(Grid, TrainsTheModelOfOneRank) {
  for (const Index tensor : tensor_sizes()) {
    for (const int variant : {0, 1, 2, 3, 4, 5}) {
      const bool sequence_parallel = variant % 2 == 1;
      deck::Config config = variant < 2 || variant == 4 ? split_deck(tensor) : split_llama(tensor);
      if (variant >= 4) {
        config.model.dropout = 0.2, config.model.attention_dropout = 0.3;
        config.train.z_loss = 1e-3;
        // AdamW would turn the rounding of gradients near 0 into steps, and dropout makes more of
        // them.
        config.optimizer.kind = deck::OptimizerKind::sgd, config.optimizer.lr = 0.1;
      }
      config.zero.stage = 3;
      config.model.sequence_parallel = sequence_parallel;
      deck::Config alone = config;
      alone.grid.tensor = 1, alone.train.micro_batch = 0;
      Training grid(config, group), one(alone, self);
      grid.engine->initialise({});
      one.engine->initialise({});
      compare_with_one_rank(grid, one, [&](const auto& shard, const auto& a, const auto& b) {
        EXPECT_TRUE(same_bits(a, b)) << shard.parameter << " at first, " << describe_grid(config);
      });
      const auto found = grid.run(0, 6), expected = one.run(0, 6);
      for (std::size_t s = 0; s < found.size(); ++s) {
        EXPECT_NEAR(found[s].loss, expected[s].loss, 1e-6 * expected[s].loss)
            << describe_grid(config);
        EXPECT_NEAR(found[s].grad_norm, expected[s].grad_norm, 1e-5 * expected[s].grad_norm)
            << "step " << s << ", " << describe_grid(config);
      }
      EXPECT_NEAR(grid.engine->validate(1, *grid.dataset.training),
                  one.engine->validate(1, *one.dataset.training), 1e-5);
      compare_with_one_rank(grid, one, [&](const auto& shard, const auto& a, const auto& b) {
        double difference = 0, size = 0;
        for (std::size_t i = 0; i < a.size(); ++i) {
          difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
          size += std::pow(static_cast<double>(b[i]), 2);
        }
        EXPECT_LE(difference, 4e-10 * size + 1e-12)
            << shard.parameter << ", " << describe_grid(config);
      });
    }
  }
}

/// Decks that together use every kind of buffer and message of a tensor group.
std::vector<deck::Config> planned_decks() {
  std::vector<deck::Config> all;
  for (const Index tensor : tensor_sizes()) {
    for (const Dtype precision : {Dtype::fp32, Dtype::bf16}) {
      deck::Config config = split_deck(tensor, precision);
      for (const Recompute& recompute : recompute_modes) {
        config.zero.stage = (config.zero.stage + 1) % 4;
        config.recompute = recompute;
        all.push_back(config);
        if (recompute.partition) continue;
        config.model.sequence_parallel = true;
        config.model.tied_embeddings = !config.model.tied_embeddings;
        all.push_back(config);
        config.model.sequence_parallel = false;
      }
      config.recompute = {};
      config.zero.bucket = 509, config.zero.overlap = deck::Overlap::on;
      all.push_back(config);
      deck::Config llama = split_llama(tensor, precision);
      llama.zero.stage = 3;
      all.push_back(llama);
      llama.model.sequence_parallel = true, llama.model.tied_embeddings = false;
      llama.recompute.mode = RecomputeMode::layernorm_gelu;
      all.push_back(llama);
    }
  }
  return all;
}

TEST_F(Grid, MemoryAndTrafficAreAsPlannedOnEveryRank) {
  constexpr Index steps = 2;
  for (const deck::Config& config : planned_decks()) {
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, steps);
    training.engine->validate(1, *training.dataset.training);
    expect_planned_bytes(training, describe_grid(config));
    const auto expected = engine::expected_traffic(training.config, training.engine->blueprint());
    const auto rows = engine::counted(training.traffic, expected);
    EXPECT_EQ(rows.size(), expected.size()) << describe_grid(config);
    for (const metrics::TrafficRow& row : rows) {
      const std::string what = row.operation + " of " + row.purpose + ", " + describe_grid(config);
      EXPECT_GT(row.elements_per_step, 0) << what;
      EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << what;
      EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << what;
    }
    for (const auto& [channel, volume] : training.traffic.in_steps())
      EXPECT_EQ(volume.elements % steps, 0) << describe_grid(config);
  }
}

// M_D: offsets are fixed before the first step. Memory therefore cannot fragment, however long a
// run lasts and however it alternates validation, checkpoints and skipped steps.
TEST_F(Grid, ALongRunNeverMovesTheHighWaterMark) {
  deck::Config config = split_deck(tensor_sizes().front(), Dtype::fp16);
  config.zero.stage = 3, config.zero.prefetch_units = 2;
  config.recompute = {.mode = RecomputeMode::full, .partition = true};
  config.optimizer.loss_scale = 0x1p24, config.optimizer.loss_scale_window = 3;
  config.train.steps = 60;
  Training training(config, group);
  training.engine->initialise({});
  const memory::Bytes planned = training.engine->planned();
  Index skipped = 0;
  for (Index s = 0; s < config.train.steps; ++s) {
    skipped += training.step(s).skipped ? 1 : 0;
    if (s % 7 == 3) training.engine->validate(1, *training.dataset.training);
    if (s % 11 == 5) const HostShards saved(training.engine->owned_shards());
    ASSERT_EQ(training.ledger.peaks(), planned) << "step " << s;
    for (std::size_t i = 0; i < planned.size(); ++i)
      ASSERT_EQ(training.ledger.now(static_cast<memory::Category>(i)), planned[i]) << "step " << s;
  }
  EXPECT_GT(skipped, 5) << "the case alternates too little";
}

memory::Bytes planned_bytes_of(const deck::Config& config, const model::TensorRank& tensor) {
  return engine::planned_bytes(config, engine::Blueprint(config, config.grid.data, tensor), 1);
}

// The plan's first rank holds at least as much as any other, so `kzero plan` prints the largest.
TEST_F(Grid, TheFirstTensorRankIsTheLargest) {
  for (const deck::Config& config : planned_decks()) {
    const deck::Config ready = resolved(config, launch_ranks());
    const Index tensor = ready.grid.tensor;
    const memory::Bytes first = planned_bytes_of(ready, {0, tensor});
    for (Index rank = 1; rank < tensor; ++rank) {
      const memory::Bytes other = planned_bytes_of(ready, {rank, tensor});
      for (std::size_t i = 0; i < first.size(); ++i)
        EXPECT_LE(other[i], first[i]) << memory::category_names[i] << ", " << describe_grid(config);
    }
  }
}

}  // namespace
}  // namespace kzero::tests
