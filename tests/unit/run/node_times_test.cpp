#include "run/node_times.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "base/waited.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

using nlohmann::json;
using run::NodeTimes;

/// Reports on a run's nodes: the lines printed and recorded on the root.
class Nodes {
 public:
  explicit Nodes(const run::MinInterval& min_interval, double share = 0.2)
      : group(first_ranks(launch_ranks())),
        ranks(config(), group),
        blueprint(config(), ranks.grid.data().size()),
        console(out, metrics::plain_screen(group.rank()), 1) {
    if (group.is_root()) sink.emplace(folder.path() / "metrics.jsonl");
    deck::Config deck = config();
    deck.run.slow_node_share = share;
    times.emplace(deck, ranks.machinery, blueprint, console, sink ? &*sink : nullptr, min_interval);
  }

  deck::Config config() const { return resolved(small_deck(), group); }

  /// A step in which only rank 0 computes and the other ranks wait.
  void step_of_rank_0() {
    times->step([&] {
      std::optional<CountedWait> wait;
      if (!group.is_root()) wait.emplace();
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      return 0;
    });
    group.barrier();
  }

  std::vector<json> records() const {
    std::vector<json> found;
    std::ifstream file(folder.path() / "metrics.jsonl");
    for (std::string line; std::getline(file, line);) found.push_back(json::parse(line));
    return found;
  }

  const TemporaryFolder folder;
  const grid::Group group;
  const Ranks ranks;
  const engine::Blueprint blueprint;
  std::ostringstream out;
  metrics::Console console;
  std::optional<metrics::JsonlSink> sink;
  std::optional<NodeTimes> times;
};

TEST(NodeTimes, TheRankThatOthersWaitForIsNamedAndRecorded) {
  Nodes nodes({.seconds = 0, .steps = 2});
  for (Index done = 1; done <= 5; ++done) {
    nodes.step_of_rank_0();
    EXPECT_EQ(nodes.times->agree(0), 0);
    nodes.times->report_if_due(done);
  }
  nodes.times->finish(5);
  if (!nodes.group.is_root()) {
    EXPECT_EQ(nodes.out.str(), "");
    return;
  }
  const auto records = nodes.records();
  ASSERT_EQ(records.size(), 3U);
  const bool is_slow = nodes.group.size() > 1;
  Index steps = 0;
  for (const json& record : records) {
    steps += record["steps"].get<Index>();
    EXPECT_EQ(record["event"], "nodes");
    EXPECT_EQ(record["step"], steps);
    EXPECT_EQ(record["by"], "rank");
    EXPECT_EQ(record["count"], nodes.group.size());
    const json& busiest = record["nodes"][0];
    EXPECT_EQ(busiest["first_rank"], 0);
    EXPECT_GE(busiest["compute_seconds"].get<double>(), 0.3 * record["steps"].get<double>());
    for (const json& row : record["nodes"]) {
      EXPECT_GE(row["wait_seconds"].get<double>(), 0);
      EXPECT_EQ(row["slow"], is_slow && row["first_rank"] == 0 && steps > 2);
    }
  }
  EXPECT_EQ(steps, 5) << "the end reports what is left";
  EXPECT_EQ(nodes.out.str().find("rank 0 is slow: the other ranks waited for it"),
            is_slow ? 0 : std::string::npos)
      << nodes.out.str();
  EXPECT_EQ(nodes.out.str().find("time of a step") != std::string::npos, is_slow);
}

TEST(NodeTimes, ComputingAndWaitingAddUpToTheTimeOfSteps) {
  Nodes nodes({});
  nodes.step_of_rank_0();
  nodes.times->agree(0);
  nodes.times->finish(1);
  if (!nodes.group.is_root()) return;
  const json record = nodes.records().at(0);
  double sum = 0;
  for (const json& row : record["nodes"])
    sum += row["compute_seconds"].get<double>() + row["wait_seconds"].get<double>();
  EXPECT_NEAR(sum / nodes.group.size(), record["seconds"].get<double>(), 1e-9);
}

TEST(NodeTimes, WhatIsBetweenStepsDoesNotCount) {
  Nodes nodes({});
  const auto begin = std::chrono::steady_clock::now();
  nodes.times->step([] { return 0; });
  const std::chrono::duration<double> step = std::chrono::steady_clock::now() - begin;
  const double longest = static_cast<double>(nodes.group.max(std::llround(1e9 * step.count())));
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // an evaluation or a checkpoint
  nodes.group.barrier();
  nodes.times->finish(1);
  if (nodes.group.is_root()) {
    EXPECT_LE(nodes.records().at(0)["seconds"].get<double>(), 1e-9 * longest + 1e-9);
  }
}

TEST(NodeTimes, AnAgreementIsTheLargestWishOfAllRanks) {
  Nodes nodes({.seconds = 0, .steps = 1});
  for (const Index wish : {0, 1, 700}) {
    nodes.times->step([] { return 0; });
    const Index mine = nodes.group.rank() == nodes.group.size() - 1 ? wish : 0;
    EXPECT_EQ(nodes.times->agree(mine), wish);
  }
}

TEST(NodeTimes, NothingIsGatheredBeforeAReportIsDue) {
  Nodes nodes({.seconds = 1000, .steps = 2});
  for (Index done = 1; done <= 4; ++done) {
    nodes.times->step([] { return 0; });
    nodes.times->agree(0);
    if (nodes.group.is_root()) nodes.times->report_if_due(done);  // a collective would hang
  }
  nodes.group.barrier();
  if (nodes.group.is_root()) {
    EXPECT_TRUE(nodes.records().empty());
  }
}

TEST(NodeTimes, ARunWithoutStepsReportsNothing) {
  Nodes nodes({});
  nodes.times->finish(0);
  EXPECT_EQ(nodes.out.str(), "");
  EXPECT_TRUE(nodes.records().empty());
}

}  // namespace
}  // namespace kzero::tests
