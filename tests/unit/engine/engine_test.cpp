#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <sstream>

#include "checkpoint/format/staging.hpp"
#include "engine/memory_report.hpp"
#include "runtime/execution.hpp"
#include "support/same_bits.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

TEST(Engine, LearnsThatOneBatchIsRepeated) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck();
  config.train.steps = 40;
  config.optimizer.lr = 1e-2;
  Training training(config, group);
  training.engine->initialise({});
  const double first = training.step(0).loss;
  EXPECT_NEAR(first, std::log(101.0), 0.1) << "small random weights guess";
  double last = 0;
  for (Index s = 1; s < 40; ++s)
    last = training.engine->step(s % 2 == 0 ? 0 : 5, *training.dataset.training).loss;
  EXPECT_LT(last, first - 1);
}

TEST(Engine, ValidationIsTheMeanLossAndLeavesTrainingAsItWas) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    Training checked(small_deck(precision), group), plain(small_deck(precision), group);
    checked.engine->initialise({});
    plain.engine->initialise({});
    for (Index s = 0; s < 3; ++s) {
      const double before = checked.engine->validate(2, *checked.dataset.training);
      EXPECT_EQ(checked.engine->validate(2, *checked.dataset.training), before) << "repeated";
      EXPECT_TRUE(same_bits(numbers_of({checked.step(s)}), numbers_of({plain.step(s)})))
          << name_of(precision);
    }
    EXPECT_TRUE(same_bits(checked.state(), plain.state()));
    // Step 0 uses one global batch from the beginning of the samples.
    Training fresh(small_deck(precision), group);
    fresh.engine->initialise({});
    const double validated = fresh.engine->validate(1, *fresh.dataset.training);
    EXPECT_NEAR(validated, fresh.step(0).loss, 1e-6 * validated);
  }
}

TEST(Engine, StepsWhoseGradientsOverflowChangeNothing) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck(Dtype::fp16);
  config.optimizer.loss_scale = 0x1p24;
  Training training(config, group);
  training.engine->initialise({});
  const auto before = training.state();
  const engine::StepResult result = training.step(0);
  EXPECT_TRUE(result.skipped);
  EXPECT_FALSE(std::isfinite(result.grad_norm));
  EXPECT_TRUE(std::isfinite(result.loss));
  EXPECT_EQ(result.loss_scale, 0x1p24);
  EXPECT_TRUE(same_bits(training.state(), before));
  EXPECT_EQ(training.engine->scaler().scale(), 0x1p23);
  EXPECT_EQ(training.engine->scaler().skipped(), 1);
}

TEST(Engine, ARunThatDivergesIsToldByEveryRankAlike) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck();
  config.optimizer.lr = 1e30, config.optimizer.warmup = 0, config.optimizer.max_skipped = 3;
  Training training(config, group);
  training.engine->initialise({});
  const auto results = training.run(0, 4);
  EXPECT_FALSE(results[0].skipped) << "the step that ruins the weights";
  for (Index s = 1; s < 4; ++s) EXPECT_TRUE(results[s].skipped) << s;
  try {
    training.engine->scaler().require_progress();
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
  }
}

TEST(Engine, MicroBatchesGiveTheSameResultsWithinRounding) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck();
  Training single(config, group);
  config.train.micro_batch = 8 / group.size();
  Training whole(config, group);
  single.engine->initialise({});
  whole.engine->initialise({});
  for (Index s = 0; s < 4; ++s) {
    const engine::StepResult a = single.step(s), b = whole.step(s);
    EXPECT_NEAR(a.loss, b.loss, 1e-5 * b.loss);
    EXPECT_NEAR(a.grad_norm, b.grad_norm, 1e-5 * b.grad_norm);
  }
}

// A device's state is copied through host memory to and from checkpoints. The amount is the same
// for any model, and zero if the host can access the state itself.
TEST(Engine, CheckpointsPassThroughMemoryThatIsPlanned) {
  const grid::Group group = first_ranks(launch_ranks());
  const auto offloaded = memory::position(memory::Category::offloaded);
  for (const Index layers : {1, 5}) {
    deck::Config config = small_deck(Dtype::bf16);
    config.model.layers = layers;
    config.zero.stage = layers == 1 ? 0 : 3;
    const deck::Config ready = resolved(config, group);
    const memory::Bytes without =
        engine::planned_bytes(ready, engine::Blueprint(ready, group.size()), 1);
    config.checkpoint.folder = "unused";
    Training training(config, group);
    training.engine->initialise({});
    const memory::Bytes& planned = training.engine->planned();
    EXPECT_EQ(planned, training.ledger.peaks());
    memory::Bytes expected = without;
    if (!runtime::on_host) expected[offloaded] += Index{16} << 20;
    EXPECT_EQ(planned, expected) << layers << " layers";
    // All shards pass through one staging buffer of that size, or are accessed in place.
    for (const auto& shards : {training.engine->owned_shards(), training.engine->local_shards()}) {
      for (const checkpoint::StateShard& shard : shards) {
        EXPECT_EQ(shard.staging, shards.front().staging);
        ASSERT_EQ(shard.staging == nullptr, runtime::on_host);
        if (shard.staging == nullptr) continue;
        EXPECT_EQ(shard.staging->slot(1).size(), std::size_t{2} << 20);
      }
    }
  }
}

// Padding takes part in exchanges but not in updates. Each element is written by one rank.
TEST(Engine, OwnedShardsOfAllRanksCoverEveryParameterOnce) {
  const grid::Group group = first_ranks(launch_ranks());
  Training training(small_deck(), group);
  training.engine->initialise({});
  std::string mine;
  for (const checkpoint::StateShard& shard : training.engine->owned_shards()) {
    ASSERT_EQ(static_cast<Index>(shard.values("master").size()),
              checkpoint::elements_of(shard.ranges));
    for (const auto& range : shard.ranges) {
      mine += shard.parameter + " " + std::to_string(range.begin) + " " +
              std::to_string(range.count) + "\n";
    }
  }
  const auto all = group.gather(mine);
  if (!group.is_root()) return;
  std::map<std::string, std::vector<int>> seen;
  for (const auto& unit : training.engine->blueprint().table) {
    for (const auto& p : unit.params) seen[p.name].assign(p.elements(), 0);
  }
  for (const std::string& text : all) {
    std::istringstream in(text);
    std::string name;
    for (Index begin = 0, count = 0; in >> name >> begin >> count;) {
      for (Index i = begin; i < begin + count; ++i) ++seen.at(name).at(i);
    }
  }
  for (const auto& [name, counts] : seen)
    EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << name;
}

}  // namespace
}  // namespace kzero::tests
