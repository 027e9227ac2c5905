// A flat stage 3 on several nodes gathers each unit once per node, into memory that the node's
// ranks share. Bits are those of stage 0 even if one rank reads a unit late, and memory and traffic
// are the planned ones.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <chrono>
#include <thread>

#include "support/checkpoints.hpp"
#include "support/faulty_model.hpp"
#include "support/full_result.hpp"

namespace kzero::tests {
namespace {

constexpr Index steps_of_a_run = 3;

/// Lets one rank sleep before it reads a unit in forward. Micro-batches take turns.
class LateRank {
 public:
  LateRank(int rank, Index unit) {
    fault = {.rank = rank, .place = Fault::Place::input, .unit = unit, .strikes = [](Index number) {
               if (number % 2 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
               return false;
             }};
  }
  ~LateRank() { fault = {}; }
  LateRank(const LateRank&) = delete;
  LateRank& operator=(const LateRank&) = delete;
};

deck::Config deck_of(Index rounds) {
  deck::Config config = small_deck(Dtype::bf16);
  config.model.layers = 2;
  config.train.global_batch = rounds * launch_ranks();
  return config;
}

/// The numbers of ranks of a node that leave several nodes.
std::vector<Index> node_sizes() {
  std::vector<Index> sizes;
  for (const Index size : {1, 2, 4}) {
    if (size < launch_ranks() && launch_ranks() % size == 0) sizes.push_back(size);
  }
  return sizes;
}

FullResult result_of(const deck::Config& config, const grid::Group& group,
                     const std::string& what) {
  Training training(config, group, deck::GemmBackend::automatic, {.family = define_faulty});
  FullResult result = full_result(training, group, steps_of_a_run);
  expect_planned_bytes(training, what);
  expect_planned_traffic(training, what);
  const bool shares = tensor::on_host && config.zero.stage == 3 && config.grid.node > 1;
  EXPECT_EQ(training.engine->blueprint().stage.unit_ranks, shares ? config.grid.node : 1) << what;
  return result;
}

TEST(SharedUnits, AreReadByAllRanksBeforeTheirPlaceIsReused) {
  const grid::Group group = first_ranks(launch_ranks());
  int trial = 0;
  for (const Index rounds : {1, 3}) {
    deck::Config config = deck_of(rounds);
    const FullResult expected = result_of(config, group, "stage 0");
    config.zero.stage = 3;
    for (const Index node : node_sizes()) {
      for (const Index prefetch : {0, 1, 2}) {
        config.grid.node = node, config.zero.prefetch_units = prefetch, ++trial;
        config.zero.overlap = (trial + rounds) % 2 == 0 ? deck::Overlap::on : deck::Overlap::off;
        config.recompute.mode =
            trial % 3 == 0 ? deck::RecomputeMode::full : deck::RecomputeMode::none;
        const LateRank late(trial % launch_ranks(), trial % 3);
        const std::string what = fmt::format("{} rounds, {} ranks a node, prefetch {}, trial {}",
                                             rounds, node, prefetch, trial);
        expect_same(result_of(config, group, what), expected, what);
      }
    }
  }
}

// A checkpoint moves between nodes of any size.
TEST(SharedUnits, ResumeOnNodesOfOtherSizes) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = deck_of(1);
  config.zero.stage = 3;
  std::vector<Index> sizes = node_sizes();
  if (sizes.size() < 2) GTEST_SKIP() << "two nodes of two ranks are four";
  const FullResult expected = result_of(config, group, "on one node");
  std::ranges::reverse(sizes);  // from nodes that share units to nodes that do not, and back
  for (const auto& [from, to] :
       {std::pair(sizes.front(), sizes.back()), std::pair(sizes.back(), sizes.front())}) {
    const SharedFolder folder(group);
    FullResult result;
    config.grid.node = from;
    {
      Training first(config, group);
      first.engine->initialise({});
      result.numbers = numbers_of(first.run(0, 1));
      save(first, group, folder.path(), 1);
    }
    config.grid.node = to;
    Training second(config, group);
    ASSERT_EQ(load(second, group, folder.path()), 1);
    const auto rest = numbers_of(second.run(1, steps_of_a_run));
    result.numbers.insert(result.numbers.end(), rest.begin(), rest.end());
    result.numbers.push_back(second.engine->validate(2, *second.dataset.training));
    result.state = full_state(second.engine->owned_shards(), group);
    expect_same(result, expected, fmt::format("from {} to {} ranks a node", from, to));
  }
}

}  // namespace
}  // namespace kzero::tests
