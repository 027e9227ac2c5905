// Muon on grids: its matrices' traffic and memory match the plan, the work is divided in every
// stage, and neither overlap nor offload changes the bits.
#include <gtest/gtest.h>

#include "engine/expected_traffic.hpp"
#include "support/checkpoints.hpp"
#include "support/outcome.hpp"

namespace kzero::tests {
namespace {

deck::Config muon_deck(Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.train.global_batch = 2 * launch_ranks();  // gives every rank work in every round
  config.model.layers = 2, config.model.hidden = 16, config.model.heads = 4;
  config.optimizer.kind = deck::OptimizerKind::muon;
  config.optimizer.momentum = 0.95, config.optimizer.nesterov = true;
  return config;
}

/// GPT-2, and Llama with fewer KV heads than tensor ranks.
std::vector<deck::Config> models(const deck::Config& config) {
  return {config, as_llama(config, 1), as_llama(config, 2)};
}

std::vector<Index> tensor_sizes_and_one() {
  std::vector<Index> sizes{1};
  for (const Index size : {2, 4}) {
    if (launch_ranks() % size == 0) sizes.push_back(size);
  }
  return sizes;
}

std::string describe_run(const deck::Config& config) {
  return fmt::format("{}, stage {}, {} tensor ranks", name_of(config.model.family),
                     config.zero.stage, config.grid.tensor);
}

void expect_planned_traffic(const deck::Config& config, const grid::Group& group) {
  constexpr int steps = 3;
  Training training(config, group);
  training.engine->initialise({});
  training.run(0, steps);
  const engine::Blueprint& blueprint = training.engine->blueprint();
  const auto rows = engine::counted(
      training.traffic,
      engine::expected_traffic(training.config, blueprint, training.grid.data().rank()));
  double all = 0;
  for (const metrics::TrafficRow& row : rows) {
    EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step)
        << describe_run(config) << ": " << row.group << " " << row.operation << " " << row.purpose;
    EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << describe_run(config);
    if (row.purpose == "matrices") all += static_cast<double>(row.elements_per_step);
  }
  if (group.size() == 1) {
    EXPECT_EQ(all, 0);
    return;
  }
  EXPECT_GT(group.sum(all), 0) << describe_run(config);
}

TEST(Muon, SendsWhatIsPlanned) {
  const grid::Group group = first_ranks(launch_ranks());
  for (deck::Config config : models(muon_deck())) {
    for (const Index tensor : tensor_sizes_and_one()) {
      for (const Index stage : {0, 1, 3}) {
        config.grid.tensor = tensor, config.zero.stage = stage;
        expect_planned_traffic(config, group);
      }
    }
  }
}

/// Elements of hidden matrices, each counted once.
Index matrix_elements(const param::Table& table) {
  Index sum = 0;
  for (const param::UnitSpec& unit : table) {
    for (const param::ParamSpec& p : unit.params) sum += p.is_matrix() ? p.elements() : 0;
  }
  return sum;
}

// Each element is sent to its owner, unless the owner already has it, and is sent back the same
// way. If all ranks hold all elements, it is only sent back.
TEST(Muon, SendsEachElementAtMostTwice) {
  const Index ranks = 4;
  for (const Index stage : {0, 1, 2, 3}) {
    deck::Config config = muon_deck();
    config.zero.stage = stage, config.train.global_batch = ranks;
    const engine::Blueprint blueprint(resolved(config, ranks), ranks);
    Index gathered = 0, returned = 0;
    for (Index rank = 0; rank < ranks; ++rank) {
      const engine::MatrixTraffic sent =
          engine::traffic_of(blueprint.matrices, rank, std::vector{0, 1, 0, 1});
      gathered += sent.gathered, returned += sent.returned;
      EXPECT_EQ(sent.gathered_tensor + sent.returned_tensor, 0);
      EXPECT_LE(sent.gathered_between_nodes, sent.gathered);
      EXPECT_LE(sent.returned_between_nodes, sent.returned);
    }
    const Index all = matrix_elements(blueprint.table);
    if (stage == 0) {
      EXPECT_EQ(gathered, 0);
      EXPECT_EQ(returned, (ranks - 1) * all);
    } else {
      EXPECT_EQ(gathered, returned);
      EXPECT_LE(gathered, all);
      EXPECT_GT(gathered, all / 2);
    }
  }
}

void expect_overlap_does_not_show(deck::Config config, const grid::Group& group) {
  config.zero.stage = 0, config.zero.overlap = deck::Overlap::off;
  const Outcome expected = train_outcome(config, group);
  config.zero.overlap = deck::Overlap::on;
  for (const Index stage : {0, 2, 3}) {
    config.zero.stage = stage;
    expect_same(train_outcome(config, group), expected, describe_run(config));
  }
}

// Precisions, models and grids together would take half a minute and run no other code.
TEST(Muon, DoesNotShowOverlap) {
  const grid::Group group = first_ranks(launch_ranks());
  for (deck::Config config : models(muon_deck())) {
    for (const Index tensor : tensor_sizes_and_one()) {
      config.grid.tensor = tensor;
      expect_overlap_does_not_show(config, group);
    }
  }
  for (const Dtype precision : {Dtype::bf16, Dtype::fp16})
    expect_overlap_does_not_show(muon_deck(precision), group);
}

TEST(Muon, IsNeitherAdamWNorWithoutNesterovTheSame) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = muon_deck();
  const Outcome muon = train_outcome(config, group);
  EXPECT_LT(muon.numbers[15], muon.numbers[0] - 0.01) << "the fourth loss below the first";
  config.optimizer.nesterov = false;
  EXPECT_FALSE(same_bits(train_outcome(config, group).numbers, muon.numbers));
  config.optimizer = small_deck().optimizer;
  EXPECT_FALSE(same_bits(train_outcome(config, group).numbers, muon.numbers));
}

TEST(Muon, KeepsNoSecondMomentOfHiddenMatrices) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const Index stage : {0, 3}) {
    deck::Config config = muon_deck(Dtype::bf16);
    config.zero.stage = stage;
    Training training(config, group);
    Index matrices = 0;
    for (const checkpoint::StateShard& shard : training.engine->owned_shards()) {
      const bool is_matrix =
          shard.parameter.starts_with("h.") && shard.parameter.ends_with(".weight") &&
          !shard.parameter.ends_with("ln_1.weight") && !shard.parameter.ends_with("ln_2.weight");
      EXPECT_EQ(shard.values("second_moment").empty(), is_matrix) << shard.parameter;
      EXPECT_EQ(shard.values("momentum").size(), shard.values("master").size());
      matrices += is_matrix ? 1 : 0;
    }
    EXPECT_GT(group.sum(static_cast<double>(matrices)), 0);
  }
}

// When state moves from one grid to another, loaded and saved state are equal, including arrays
// that not every parameter has.
TEST(Muon, ChecksItsStateOnAnyOtherGrid) {
  if (launch_ranks() < 2) GTEST_SKIP() << "needs 2 ranks";
  const grid::Group group = first_ranks(launch_ranks());
  for (deck::Config config : models(muon_deck())) {
    for (const auto& [from, to] : {std::pair<Index, Index>{1, 2}, {2, 1}}) {
      if (launch_ranks() % 2 != 0) continue;
      const SharedFolder folder(group);
      config.grid.tensor = from, config.zero.stage = 3;
      Training first(config, group);
      first.engine->initialise({});
      first.run(0, 2);
      save(first, group, folder.path(), 2);
      config.grid.tensor = to, config.zero.stage = 1;
      Training second(config, group);
      ASSERT_EQ(load(second, group, folder.path()), 2);
      std::vector<std::string> problems;
      const auto found = checkpoint::open(group, folder.path(), engine::saved_parameters, problems);
      checkpoint::require_saved_values(group, found, second.engine->owned_shards());
    }
  }
}

}  // namespace
}  // namespace kzero::tests
