// Steps of training on streams that only events order.
#include <gtest/gtest.h>

#include "stream_order/streams.hpp"
#include "support/checkpoints.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

using deck::Offload;

struct Variant {
  const char* name;
  void (*change)(deck::Config&);
  bool also_without_overlap = false;
};

const Variant variants[] = {
    {"plain", [](deck::Config&) {}, true},
    {"accumulated_in_the_model",
     [](deck::Config& c) { c.zero.accumulate = deck::Accumulate::local; }},
    {"activations_offloaded",
     [](deck::Config& c) {
       c.recompute.mode = deck::RecomputeMode::full;
       c.recompute.offload = Offload::host;
     }},
    {"optimizer_offloaded", [](deck::Config& c) { c.zero.offload = Offload::host; }},
    {"all_offloaded",
     [](deck::Config& c) {
       c.recompute = {.mode = deck::RecomputeMode::full, .offload = Offload::host};
       c.zero.offload = Offload::host;
       c.zero.prefetch_units = 2;
     },
     true},
    {"adafactor",
     [](deck::Config& c) {
       c.optimizer.kind = deck::OptimizerKind::adafactor;
       c.zero.offload = Offload::host;
     }},
    {"muon",
     [](deck::Config& c) {
       c.optimizer.kind = deck::OptimizerKind::muon;
       c.model.hidden = 16, c.model.heads = 4;
     }},
    {"muon_offloaded",
     [](deck::Config& c) {
       c.optimizer.kind = deck::OptimizerKind::muon;
       c.model.hidden = 16, c.model.heads = 4;
       c.zero.offload = Offload::host;
     }},
};

/// The number of reports of two steps, a validation and a look at the state.
int reports_of(const deck::Config& config) {
  const int before = stream_order::reports();
  {
    Training training(config, grid::world_group());
    training.engine->initialise({});
    training.run(0, 2);
    training.engine->evaluate(4, *training.dataset.training);
    training.state();
    training.engine->loaded();
    training.step(2);
  }
  return stream_order::reports() - before;
}

class StreamOrder : public testing::TestWithParam<std::tuple<Index, Variant>> {};

deck::Config deck_of(Dtype precision) {
  deck::Config config = small_deck(precision);
  config.train.global_batch = 4;
  return config;
}

TEST_P(StreamOrder, IsWhatATrainingNeeds) {
  const auto& [stage, variant] = GetParam();
  if (stage > 0 && launch_ranks() == 1) GTEST_SKIP() << "with one rank all stages are one";
  deck::Config config = deck_of(Dtype::fp32);
  config.zero = {.stage = stage, .bucket = 3001};
  variant.change(config);
  if (stage > 1 && config.zero.accumulate == deck::Accumulate::local)
    GTEST_SKIP() << "these stages add reduced gradients";
  for (const auto kind : {deck::CommunicatorKind::mpi, deck::CommunicatorKind::automatic}) {
    for (const auto overlap : {deck::Overlap::on, deck::Overlap::off}) {
      if (overlap == deck::Overlap::off && !variant.also_without_overlap) continue;
      config.run.communicator = kind;
      config.zero.overlap = overlap;
      EXPECT_EQ(reports_of(config), 0)
          << "overlap " << (overlap == deck::Overlap::on) << ", " << name_of(kind);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, StreamOrder,
                         testing::Combine(testing::Range(Index{0}, Index{4}),
                                          testing::ValuesIn(variants)),
                         [](const auto& param) {
                           return fmt::format("stage{}_{}", std::get<0>(param.param),
                                              std::get<1>(param.param).name);
                         });

TEST(StreamOrderOfTensorRanks, IsWhatATrainingNeeds) {
  if (launch_ranks() < 2) GTEST_SKIP() << "needs two ranks";
  for (const auto kind : {deck::CommunicatorKind::mpi, deck::CommunicatorKind::automatic}) {
    for (const bool is_split : {false, true}) {
      deck::Config config = deck_of(Dtype::bf16);
      config.model.hidden = 16, config.model.heads = 4;
      config.model.sequence_parallel = is_split;
      config.grid.tensor = 2;
      config.recompute = {deck::RecomputeMode::full, !is_split, Offload::host};
      config.run.communicator = kind;
      EXPECT_EQ(reports_of(config), 0) << name_of(kind) << ", sequence parallel " << is_split;
    }
  }
}

/// Reads on the host where ThreadSanitizer sees it, as it does not in the folder of checkpoints.
void read_here(const std::vector<checkpoint::StateShard>& shards) {
  double sum = 0;
  for (const checkpoint::StateShard& shard : shards) {
    for (const checkpoint::StateValues& array : shard.arrays) {
      for (const float value : array.values) sum += value;
    }
  }
  EXPECT_NE(sum, 0);
}

// From the state to the files and back while training continues.
TEST(StreamOrderOfCheckpoints, IsWhatATrainingNeeds) {
  const grid::Group world = grid::world_group();
  for (const Index stage : {0, 3}) {
    for (const bool is_copied : {false, true}) {
      const SharedFolder folder(world);
      deck::Config config = deck_of(Dtype::bf16);
      config.zero.stage = launch_ranks() == 1 ? 0 : stage;
      config.checkpoint.folder = folder.path().string();
      config.checkpoint.asynchronous = is_copied;
      const int before = stream_order::reports();
      {
        Training training(config, world);
        training.engine->initialise({});
        training.run(0, 2);
        const auto shards =
            is_copied ? training.engine->snapshot() : training.engine->owned_shards();
        if (is_copied) read_here(shards);
        save(training, world, folder.path(), 2, shards);
        training.run(2, 4);
        load(training, world, folder.path());
        training.run(2, 4);
      }
      EXPECT_EQ(stream_order::reports() - before, 0) << "stage " << stage << ", " << is_copied;
    }
  }
}

}  // namespace
}  // namespace kzero::tests
