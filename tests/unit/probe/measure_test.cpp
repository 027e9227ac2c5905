// Measurements of the tests' ranks, which are on one machine. Times are not checked because they
// depend on the machine's other load.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/arithmetic.hpp"
#include "named_nodes.hpp"
#include "probe/survey.hpp"

namespace kzero::probe {
namespace {

TEST(Link, both_ends_get_the_same_figures) {
  const grid::Group world = grid::world_group();
  const int partner = world.rank() % 2 == 0 ? world.rank() + 1 : world.rank() - 1;
  if (world.size() < 2) GTEST_SKIP() << "for pairs";
  const Link link = measure_link(world, partner);
  EXPECT_GT(link.latency_seconds, 0);
  EXPECT_GT(link.bytes_per_second, 0);
  const auto all =
      world.all_gather(std::vector<double>{link.latency_seconds, link.bytes_per_second});
  const auto other = static_cast<std::size_t>(partner);
  EXPECT_EQ(all[2 * other], link.latency_seconds);
  EXPECT_EQ(all[2 * other + 1], link.bytes_per_second);
}

TEST(Links, are_measured_between_neighbours_and_between_nodes) {
  const grid::Group world = grid::world_group();
  const grid::Nodes nodes = named_nodes(world);
  const auto within = measure_within(world, nodes), between = measure_between(world, nodes);
  if (!world.is_root()) {
    EXPECT_TRUE(within.empty() && between.empty());
    return;
  }
  EXPECT_EQ(static_cast<int>(within.size()), world.size() - nodes.count());
  std::set<std::pair<int, int>> pairs;
  for (const MeasuredLink& link : between) {
    EXPECT_LT(link.one, link.other);
    EXPECT_GT(link.link.bytes_per_second, 0);
    pairs.emplace(link.one, link.other);
  }
  EXPECT_EQ(static_cast<int>(pairs.size()), nodes.count() * (nodes.count() - 1) / 2)
      << "of few nodes all pairs";
  EXPECT_EQ(std::isnan(best_of(between, 0).bytes_per_second), nodes.count() == 1);
}

TEST(Links, the_best_of_a_place_counts) {
  const std::vector<MeasuredLink> links{{0, 1, {2e-6, 5}}, {0, 2, {1e-6, 3}}, {1, 2, {9e-6, 9}}};
  EXPECT_EQ(best_of(links, 0).bytes_per_second, 5);
  EXPECT_EQ(best_of(links, 0).latency_seconds, 1e-6);
  EXPECT_TRUE(std::isnan(best_of(links, 3).latency_seconds));
}

TEST(Product, repeats_its_bits_and_knows_others) {
  const tensor::Execution exec;
  const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
  const auto digest = [&](const engine::ProductShape& shape, Dtype precision) {
    const engine::Product product(exec, shape, precision);
    product.run(*gemm);
    return product.digest();
  };
  EXPECT_EQ(digest({7, 5, 11}, Dtype::bf16), digest({7, 5, 11}, Dtype::bf16));
  EXPECT_NE(digest({7, 5, 11}, Dtype::bf16), digest({5, 7, 11}, Dtype::bf16));
  deck::Config config;
  config.model.hidden = 24, config.model.vocab = 31, config.model.sequence = 9,
  config.train.micro_batch = 2;
  const std::string bits = product_bits(*gemm, config);
  EXPECT_EQ(bits.size(), 16U);
  EXPECT_EQ(bits, product_bits(*gemm, config));
  config.train.precision = Dtype::bf16;
  EXPECT_NE(bits, product_bits(*gemm, config));
}

TEST(Survey, of_the_tests_ranks_agrees) {
  const grid::Group world = grid::world_group();
  const grid::Nodes nodes = named_nodes(world);
  deck::Config config;
  config.model.hidden = 24, config.model.sequence = 9, config.train.micro_batch = 2;
  const Survey found = survey({world, nodes, 1, 1}, config);
  if (!world.is_root()) {
    EXPECT_TRUE(found.figures.ranks.empty());
    return;
  }
  EXPECT_TRUE(found.comparison.agrees());
  EXPECT_EQ(static_cast<int>(found.figures.ranks.size()), world.size());
  for (const Speed& speed : found.figures.ranks) {
    EXPECT_GT(speed.operations, 0);
    EXPECT_GT(speed.memory_bytes, 0);
  }
  ASSERT_EQ(static_cast<int>(found.figures.nodes.size()), nodes.count());
  for (const NodeFigures& node : found.figures.nodes)
    EXPECT_LE(std::abs(node.clock.ahead), 0.1 + 2 * node.clock.accuracy) << "one machine's clock";
}

}  // namespace
}  // namespace kzero::probe
