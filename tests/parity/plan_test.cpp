// A run's memory and traffic match the plan, to the byte and to the element.
#include <gtest/gtest.h>

#include "base/float16.hpp"
#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "support/training.hpp"
#include "tensor/gemm.hpp"

namespace kzero::tests {
namespace {

/// Two models, with and without accumulation, in every precision and stage. Some use recomputation.
std::vector<deck::Config> decks() {
  std::vector<deck::Config> all;
  const auto every_stage = [&](deck::Config config) {
    for (const Index stage : {0, 1, 2, 3}) {
      config.zero.stage = stage;
      all.push_back(config);
    }
  };
  const Index ranks = launch_ranks();
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    deck::Config config = small_deck(precision);
    config.optimizer.loss_scale = 1;  // no step is skipped
    config.train.global_batch = ranks;
    every_stage(config);
    deck::Config on_nodes = config;  // "auto" then overlaps, which uses other buffers
    on_nodes.grid.node = 1;
    every_stage(on_nodes);
    config.model.tied_embeddings = false;
    config.model.feed_forward = 31;
    config.train.micro_batch = 2, config.train.global_batch = 4 * ranks;
    config.zero.bucket = 509, config.zero.prefetch_units = 0,
    config.zero.overlap = deck::Overlap::off;
    every_stage(config);
    deck::Config llama = as_llama(config, 1);
    every_stage(llama);
    llama.recompute.mode = deck::RecomputeMode::layernorm_gelu;
    all.push_back(llama);
    using deck::RecomputeMode;
    for (const auto& [stage, recompute] :
         {std::pair<Index, deck::Recompute>{0, {.mode = RecomputeMode::layernorm_gelu}},
          {3, {.mode = RecomputeMode::full}},
          {2, {.mode = RecomputeMode::full, .offload = deck::Offload::host}}}) {
      config.zero.stage = stage, config.recompute = recompute;
      all.push_back(config);
    }
    config.recompute = {};
    config.zero.accumulate = deck::Accumulate::local;
    for (const Index stage : {0, 1}) {
      config.zero.stage = stage;
      all.push_back(config);
    }
  }
  return all;
}

std::string describe(const deck::Config& config) {
  return std::string(name_of(config.model.family)) + ' ' +
         std::string(name_of(config.train.precision)) +
         (config.model.tied_embeddings ? ", tied" : ", untied") + ", stage " +
         std::to_string(config.zero.stage) + ", nodes of " + std::to_string(config.grid.node) +
         ", recompute " + std::string(name_of(config.recompute.mode));
}

// Model states of paper sections 3.1 and 5. Of 2 + 2 + 12 bytes per parameter (4 + 4 + 8 in fp32),
// the stage divides its share by N. The test names the other contents of each category: padding of
// unit shards, gathered units, unsharded gradient buffers, fp32 sums of micro-batches.
TEST(Plan, ModelStatesAreThePapers) {
  const grid::Group group = first_ranks(launch_ranks());
  const Index ranks = group.size();
  for (const deck::Config& config : decks()) {
    const deck::Config ready = resolved(config, ranks);
    const engine::Blueprint blueprint(ready, ranks);
    const memory::Bytes planned = engine::planned_bytes(ready, blueprint, 1);
    const Index parameters = param::elements_of(blueprint.table);
    Index slack = static_cast<Index>(blueprint.table.size()) * ranks * param::shard_alignment;
    for (const param::UnitSpec& unit : blueprint.table) slack += unit.zeros;
    const Index width = bytes_of(config.train.precision);
    const bool sums_in_place = width == 4 && config.zero.stage >= 2 && ranks > 1;
    const Index open = std::max<Index>(0, blueprint.sums.owner_open() - (sums_in_place ? 1 : 0));
    EXPECT_LE(open, 3) << "four blocks";
    const auto expect = [&](memory::Category category, Index each, bool is_cut, Index more) {
      const Index shared = is_cut && ranks > 1 ? ceil_div(parameters, ranks) : parameters;
      EXPECT_GE(planned[position(category)], shared * each + more) << describe(config);
      EXPECT_LE(planned[position(category)],
                (shared + slack) * each + more + 4 * slack * std::max<Index>(1, open) + 4 * 63)
          << describe(config);
    };
    using memory::Category;
    expect(
        Category::parameters, width, config.zero.stage >= 3,
        std::max(blueprint.training.gathered_elements(), blueprint.validation.gathered_elements()) *
            width);
    expect(Category::gradients, width, config.zero.stage >= 2,
           blueprint.training.target_elements() * width + open * ceil_div(parameters, ranks) * 4);
    expect(Category::optimizer, width == 4 ? 8 : 12, config.zero.stage >= 1, 0);
  }
}

// Only few units are gathered at a time: the paper's 16 P / N does not hide a full model.
TEST(Plan, GatheredUnitsAreAtMostPrefetchAndOne) {
  deck::Config config = small_deck();
  config.model.layers = 40;
  config.model.hidden = 48, config.model.vocab = 101;
  config.zero.stage = 3;
  config.grid.node = 1;  // ranks of a node would share all units
  config.train.micro_batch = 1, config.train.global_batch = 8;
  for (const Index prefetch : {0, 1, 3}) {
    config.zero.prefetch_units = prefetch;
    const engine::Blueprint blueprint(resolved(config, 8), 8);
    const Index block = blueprint.layout.unit(1).padded;
    const Index embedding = blueprint.layout.unit(0).padded;
    const Index head = blueprint.layout.units().back().padded;
    EXPECT_GE(blueprint.training.gathered_elements(), (prefetch + 1) * block);
    // The tied head reads two units, while at most `prefetch` blocks are gathered.
    EXPECT_LE(blueprint.training.gathered_elements(), (prefetch + 1) * block + embedding + head);
  }
}

TEST(Plan, TheLedgerIsEmptyAfterTheRun) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck();
  config.train.global_batch = group.size();
  config.zero.overlap = deck::Overlap::on;
  config = resolved(config, group);
  Ranks ranks(config, group);
  const memory::Ledger& ledger = ranks.machinery.ledger;
  {
    const auto engine =
        engine::make_engine(config, engine::Blueprint(config, group.size()), ranks.machinery);
    EXPECT_GT(ledger.now(memory::Category::parameters), 0);
  }
  for (std::size_t i = 0; i < memory::category_count; ++i) {
    EXPECT_EQ(ledger.now(static_cast<memory::Category>(i)), 0) << memory::category_names[i];
  }
}

/// Elements of all units padded for `ranks`, and the elements that one rank sends in their
/// collectives.
Index exchanged(const param::Table& table, Index ranks) {
  Index padded = 0;
  const Index multiple = ranks * param::shard_alignment;
  Index needed = 0;
  for (const param::UnitSpec& unit : table) {
    needed += unit.elements() + unit.zeros;
    padded += round_up(unit.elements() + unit.zeros, multiple);
  }
  EXPECT_LT(padded - needed, multiple * static_cast<Index>(table.size()));
  return padded / ranks * (ranks - 1);
}

// Paper section 7: 2 P (N - 1) / N elements per step in stages 0 to 2, at most 3 P (N - 1) / N in
// stage 3. Here each unit's P is padded to equal, aligned shards. Every further round of
// micro-batches adds a reduction and, in stage 3, the gathers. Stage 3 gathers nothing if its ranks
// share the parameters in memory.
void expect_traffic_of_theory(const Training& training, Index ranks, Index steps) {
  const deck::Config& config = training.config;
  const engine::Blueprint& blueprint = training.engine->blueprint();
  const auto rows = engine::counted(training.traffic, engine::expected_traffic(config, blueprint));
  const bool gathers = config.zero.stage < 3 || blueprint.stage.gathers_parameters();
  ASSERT_EQ(rows.size(), ranks == 1 ? 0U : gathers ? 2U : 1U) << describe(config);
  if (ranks == 1) return;
  const Index once = exchanged(blueprint.table, ranks), micro = blueprint.batches.rounds();
  for (const metrics::TrafficRow& row : rows) {
    EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step) << describe(config);
    EXPECT_EQ(row.bytes_per_step, row.expected_bytes_per_step) << describe(config);
    EXPECT_EQ(row.bytes_per_step, row.elements_per_step * bytes_of(config.train.precision));
    EXPECT_EQ(row.bytes_between_nodes_per_step, row.expected_bytes_between_nodes_per_step)
        << describe(config);
    EXPECT_EQ(row.group, "data");
  }
  EXPECT_EQ(rows[0].operation, "reduce_scatter");
  EXPECT_EQ(rows[0].elements_per_step, blueprint.adds_reduced ? micro * once : once);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].operation, "all_gather");
    EXPECT_EQ(rows[i].purpose, config.zero.stage == 0 ? "gradients" : "parameters");
    if (config.zero.stage < 3) {
      EXPECT_EQ(rows[i].elements_per_step, once) << describe(config);
    } else {
      EXPECT_LE(rows[i].elements_per_step, 2 * micro * once) << describe(config);
      EXPECT_GE(rows[i].elements_per_step, micro * once) << describe(config);
    }
  }
  // Totals rather than means, which could round.
  for (const auto& [channel, volume] : training.traffic.in_steps())
    EXPECT_EQ(volume.elements % steps, 0) << describe(config);
}

// One training shows both, as the trainings take almost all the time of this file.
TEST(Plan, BytesAreTheLedgersPeakAndTrafficIsTheory) {
  const grid::Group group = first_ranks(launch_ranks());
  constexpr Index steps = 3;
  for (const deck::Config& config : decks()) {
    Training training(config, group);
    training.engine->initialise({});
    training.run(0, steps);
    training.engine->validate(1, *training.dataset.training);
    expect_planned_bytes(training, describe(config));
    expect_traffic_of_theory(training, group.size(), steps);
  }
}

// The gathers of stage 3: all units forward, the tied embedding again for the head, all blocks
// except the last again backward.
TEST(Plan, Stage3GathersAreThoseOfTheSchedule) {
  const Index ranks = 4;
  deck::Config config = small_deck();
  config.train.global_batch = ranks, config.zero.stage = 3, config.grid.node = 1;
  const engine::Blueprint blueprint(resolved(config, ranks), ranks);
  const auto padded = [&](Index u) { return blueprint.layout.unit(u).padded; };
  EXPECT_EQ(blueprint.training.gathers(),
            2 * padded(0) + 2 * padded(1) + 2 * padded(2) + padded(3) + padded(4));
  EXPECT_EQ(blueprint.validation.gathers(),
            2 * padded(0) + padded(1) + padded(2) + padded(3) + padded(4));
}

// Ranks of one node hold the parameters once, and a rank counts its part.
TEST(Plan, Stage3OnOneNodeHoldsNothingTwice) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const Index ranks = 4;
  deck::Config config = small_deck(Dtype::bf16);
  config.train.global_batch = ranks, config.zero.stage = 3;
  const auto parameters = [&](Index node_ranks, deck::SharesParameters copies) {
    config.grid.node = node_ranks, config.zero.parameters = copies;
    const deck::Config ready = resolved(config, ranks);
    const engine::Blueprint blueprint(ready, ranks);
    return engine::planned_bytes(ready, blueprint, 1)[position(memory::Category::parameters)];
  };
  constexpr auto node = deck::SharesParameters::node, rank = deck::SharesParameters::ranks;
  const Index all = engine::Blueprint(resolved(config, ranks), ranks).layout.total() * 2;
  EXPECT_EQ(parameters(4, rank), all / 4);
  EXPECT_EQ(parameters(4, node), all / 4);
  EXPECT_EQ(parameters(2, node), all / 2);
  EXPECT_GT(parameters(2, rank), all / 4) << "gathers between nodes";
  const Index gathered = parameters(1, rank) - all / 4;
  EXPECT_EQ(parameters(2, rank), all / 4 + gathered / 2) << "into memory that two ranks share";
}

// A block is recomputed with the parameters that were gathered for its backward.
TEST(Plan, RecomputationGathersNothingMore) {
  deck::Config config = small_deck();
  config.train.global_batch = 4, config.zero.stage = 3, config.grid.node = 1;
  const engine::Blueprint plain(resolved(config, 4), 4);
  for (const auto mode : {deck::RecomputeMode::layernorm_gelu, deck::RecomputeMode::full}) {
    config.recompute.mode = mode;
    const engine::Blueprint again(resolved(config, 4), 4);
    EXPECT_EQ(again.training.gathers(), plain.training.gathers());
    EXPECT_EQ(again.training.gathered_elements(), plain.training.gathered_elements());
  }
}

TEST(Plan, AModelThatDoesNotFitIsAnErrorThatNamesTheCategory) {
  deck::Config config = small_deck();
  config.model.hidden = 65535, config.model.layers = 1000;
  config.train.global_batch = launch_ranks();
  const grid::Group group = first_ranks(launch_ranks());
  config = resolved(config, group);
  Ranks ranks(config, group);
  try {
    engine::make_engine(config, engine::Blueprint(config, group.size()), ranks.machinery);
    FAIL() << "two hundred terabytes were had";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::memory);
    EXPECT_NE(std::string(error.what()).find("for parameters"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace kzero::tests
