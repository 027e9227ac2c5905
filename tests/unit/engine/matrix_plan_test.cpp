#include "engine/matrix_plan.hpp"

#include <gtest/gtest.h>

#include "engine/blueprint.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

deck::Config muon_deck() {
  deck::Config config = small_deck();
  config.model.hidden = 16, config.model.heads = 4, config.model.layers = 2;
  config.optimizer.kind = deck::OptimizerKind::muon;
  config.optimizer.momentum = 0.95, config.optimizer.nesterov = true;
  return config;
}

/// GPT-2, and Llama with the fewest KV heads.
std::vector<deck::Config> models() {
  return {muon_deck(), as_llama(muon_deck(), 1), as_llama(muon_deck(), 2)};
}

engine::Blueprint blueprint_of(deck::Config config, Index stage, Index data, Index tensor,
                               Index rank = 0) {
  config.zero.stage = stage, config.grid.tensor = tensor;
  return {resolved(config, data * tensor), data, {rank, tensor}};
}

TEST(MatrixPlan, IsEmptyForOtherOptimizers) {
  deck::Config config = small_deck();
  EXPECT_TRUE(engine::Blueprint(resolved(config, 2), 2).matrices.empty());
}

TEST(MatrixPlan, HasTheHiddenMatricesOfEveryBlock) {
  for (const deck::Config& config : models()) {
    const engine::Blueprint blueprint = blueprint_of(config, 1, 2, 2);
    const bool is_gpt2 = config.model.family == deck::ModelFamily::gpt2;
    EXPECT_EQ(std::ssize(blueprint.matrices.parameters()), 2 * (is_gpt2 ? 4 : 7));
    Index matrices = 0;
    for (const auto& p : blueprint.matrices.parameters()) {
      matrices += p.matrices;
      EXPECT_GT(p.unit, 0);
      EXPECT_LT(p.unit, 3);
    }
    EXPECT_EQ(matrices, 2 * (is_gpt2 ? 6 : 7));
  }
}

// The parts of the tensor ranks that send theirs cover each matrix. Each element occurs once, at
// the position that the table's splits give.
TEST(MatrixPlan, PartsOfTheTensorRanksMakeUpEachMatrix) {
  for (const deck::Config& config : models()) {
    for (const Index tensor : {1, 2, 4}) {
      const engine::Blueprint blueprint = blueprint_of(config, 1, 1, tensor);
      const engine::MatrixPlan& plan = blueprint.matrices;
      for (const auto& p : plan.parameters()) {
        const Index columns = p.matrices * p.shape.columns;
        std::vector<int> seen(static_cast<std::size_t>(p.shape.rows * columns));
        for (Index t = 0; t < tensor; ++t) {
          EXPECT_LE(plan.source(p, t), t);
          if (plan.source(p, t) != t) continue;
          // The global position of each local element according to the split.
          std::vector<Index> place(static_cast<std::size_t>(plan.local_elements(p, t)));
          p.splits[t].for_each_run(0, plan.local_elements(p, t),
                                   [&](Index local, Index in_parameter, Index count) {
                                     for (Index i = 0; i < count; ++i)
                                       place[local + i] = in_parameter + i;
                                   });
          for (Index m = 0; m < p.matrices; ++m) {
            const engine::MatrixPart part = plan.part(p, t, m);
            for (Index i = 0; i < part.rows; ++i) {
              for (Index j = 0; j < part.columns; ++j) {
                const Index expected =
                    (part.row + i) * columns + m * p.shape.columns + part.column + j;
                EXPECT_EQ(place.at(part.offset + i * part.stride + j), expected);
                ++seen.at(expected);
              }
            }
          }
        }
        EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
      }
    }
  }
}

TEST(MatrixPlan, DataRanksHoldEachElementOfALocalPartOnce) {
  for (const Index stage : {0, 1, 3}) {
    for (const Index data : {1, 2, 3, 7}) {
      deck::Config config = muon_deck();
      config.train.global_batch = data;
      const engine::MatrixPlan plan = blueprint_of(config, stage, data, 1).matrices;
      EXPECT_EQ(plan.gathers(), stage > 0 && data > 1);
      for (const auto& p : plan.parameters()) {
        Index at = 0;
        for (Index r = 0; r < data; ++r) {
          const zero::Range held = plan.held(p, r);
          if (!plan.gathers()) {
            EXPECT_EQ(held.begin, 0);
            EXPECT_EQ(held.end, p.shape.elements() * p.matrices);
            continue;
          }
          if (held.begin == held.end) continue;
          EXPECT_EQ(held.begin, at);
          at = held.end;
        }
        if (plan.gathers()) {
          EXPECT_EQ(at, p.shape.elements() * p.matrices);
        }
      }
    }
  }
}

TEST(MatrixPlan, EveryParameterHasOneTurnOnOneRank) {
  for (const deck::Config& config : models()) {
    const engine::MatrixPlan plan = blueprint_of(config, 2, 2, 2).matrices;
    std::vector<int> seen(plan.parameters().size());
    for (Index round = 0; round < plan.rounds(); ++round) {
      for (Index d = 0; d < 2; ++d) {
        for (Index t = 0; t < 2; ++t) {
          const engine::MatrixParameter* p = plan.at(round, d, t);
          if (p != nullptr) ++seen.at(p - plan.parameters().data());
        }
        EXPECT_LE(plan.local_begin(round, d, 2), plan.gathered_elements());
      }
    }
    EXPECT_EQ(seen, std::vector<int>(seen.size(), 1));
    double all = 0;
    for (const auto& p : plan.parameters())
      all += static_cast<double>(p.matrices) * optim::newton_schulz_operations(p.shape);
    EXPECT_GE(plan.max_operations(), all / 4);
    EXPECT_LT(plan.max_operations(), all / 3) << "four ranks share the work";
  }
}

}  // namespace
}  // namespace kzero::tests
