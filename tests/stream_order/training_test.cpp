// Steps of training on streams that only events order.
#include <gtest/gtest.h>

#include "stream_order/streams.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

using deck::Offload;

struct Variant {
  const char* name;
  void (*change)(deck::Config&);
};

constexpr Variant variants[] = {
    {"plain", [](deck::Config&) {}},
    {"accumulated in the model",
     [](deck::Config& c) { c.zero.accumulate = deck::Accumulate::local; }},
    {"activations offloaded",
     [](deck::Config& c) {
       c.recompute.mode = deck::RecomputeMode::full;
       c.recompute.offload = Offload::host;
     }},
    {"optimizer offloaded", [](deck::Config& c) { c.zero.offload = Offload::host; }},
    {"all offloaded, prefetched",
     [](deck::Config& c) {
       c.recompute.offload = c.zero.offload = Offload::host;
       c.zero.prefetch_units = 2;
     }},
    {"Adafactor", [](deck::Config& c) { c.optimizer.kind = deck::OptimizerKind::adafactor; }},
    {"Muon",
     [](deck::Config& c) {
       c.optimizer.kind = deck::OptimizerKind::muon;
       c.model.hidden = 16, c.model.heads = 4;
     }},
    {"Muon, offloaded",
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
    training.engine->evaluate(2, *training.dataset.training);
    training.state();
    training.engine->loaded();
    training.step(2);
  }
  return stream_order::reports() - before;
}

class StreamOrder : public testing::TestWithParam<Index> {};

TEST_P(StreamOrder, IsWhatATrainingNeeds) {
  for (const auto kind : {deck::CommunicatorKind::mpi, deck::CommunicatorKind::automatic}) {
    for (const auto overlap : {deck::Overlap::on, deck::Overlap::off}) {
      for (const Variant& variant : variants) {
        deck::Config config = small_deck(Dtype::fp32);
        config.zero = {.stage = GetParam(), .bucket = 3001, .overlap = overlap};
        config.run.communicator = kind;
        variant.change(config);
        if (GetParam() > 1 && config.zero.accumulate == deck::Accumulate::local) continue;
        EXPECT_EQ(reports_of(config), 0) << variant.name << ", overlap "
                                         << (overlap == deck::Overlap::on) << ", " << name_of(kind);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, StreamOrder, testing::Range(Index{0}, Index{4}));

TEST(StreamOrderOfTensorRanks, IsWhatATrainingNeeds) {
  if (launch_ranks() < 2) GTEST_SKIP() << "needs two ranks";
  for (const auto kind : {deck::CommunicatorKind::mpi, deck::CommunicatorKind::automatic}) {
    for (const bool is_split : {false, true}) {
      deck::Config config = small_deck(Dtype::bf16);
      config.model.hidden = 16, config.model.heads = 4;
      config.model.sequence_parallel = is_split;
      config.grid.tensor = 2;
      config.recompute = {deck::RecomputeMode::full, true,
                          is_split ? Offload::none : Offload::host};
      config.run.communicator = kind;
      EXPECT_EQ(reports_of(config), 0) << name_of(kind) << ", sequence parallel " << is_split;
    }
  }
}

}  // namespace
}  // namespace kzero::tests
