#include "metrics/recorded_launches.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "metrics/jsonl_sink.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::metrics {
namespace {

class RecordedLaunches : public testing::Test {
 protected:
  std::vector<RecordedLaunch> read(Index from) const {
    std::vector<RecordedLaunch> launches;
    read_launches(path_, from, [&](RecordedLaunch&& one) { launches.push_back(std::move(one)); });
    return launches;
  }

  void append(const std::string& text) const { std::ofstream(path_, std::ios::app) << text; }

  /// Records a launch of steps [first, end) with losses from `loss`.
  void record(Index first, Index end, double loss) const {
    JsonlSink sink(path_);
    sink.write(StartRecord{.hosts = {"node1", "node2"},
                           .first_step = first,
                           .bits = "ab",
                           .state = first == 0 ? "" : "cd"});
    for (Index step = first; step < end; ++step) {
      sink.write(
          StepRecord{.step = step, .loss = loss + static_cast<double>(step), .grad_norm = 1.0 / 3});
    }
    sink.write(CheckpointRecord{.step = end, .state = "ef"});
  }

  tests::TemporaryFolder folder_;
  std::string path_ = folder_.path() / "metrics.jsonl";
};

std::vector<Index> numbers(const RecordedLaunch& launch) {
  std::vector<Index> steps;
  for (const RecordedStep& one : launch.steps) steps.push_back(one.step);
  return steps;
}

TEST_F(RecordedLaunches, AreReadBackInTheirOrder) {
  record(0, 5, 0.1);
  record(3, 6, 0.2);
  const auto launches = read(2);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[0].hosts, (std::vector<std::string>{"node1", "node2"}));
  EXPECT_EQ(launches[0].bits, "ab");
  EXPECT_EQ(launches[0].start, (RecordedState{0, ""}));
  EXPECT_EQ(launches[0].saved, (std::vector<RecordedState>{{5, "ef"}}));
  EXPECT_EQ(numbers(launches[0]), (std::vector<Index>{2, 3, 4}));
  EXPECT_EQ(launches[0].steps[1].loss, 0.1 + 3);
  EXPECT_EQ(launches[0].steps[1].grad_norm, 1.0 / 3);
  EXPECT_EQ(launches[1].start, (RecordedState{3, "cd"}));
  EXPECT_EQ(numbers(launches[1]), (std::vector<Index>{3, 4, 5}));
  EXPECT_EQ(launches[1].steps[0].loss, 0.2 + 3);
}

TEST_F(RecordedLaunches, HaveNansForNumbersThatWereNotFinite) {
  JsonlSink sink(path_);
  sink.write(StartRecord{});
  sink.write(StepRecord{.step = 7,
                        .loss = 2.5,
                        .grad_norm = std::numeric_limits<double>::infinity(),
                        .skipped = true});
  const auto launches = read(0);
  ASSERT_EQ(launches.at(0).steps.size(), 1U);
  EXPECT_EQ(launches[0].steps[0].loss, 2.5);
  EXPECT_TRUE(std::isnan(launches[0].steps[0].grad_norm));
}

TEST_F(RecordedLaunches, AreReadDespiteLinesThatAreNoRecords) {
  append("{\"event\":\"step\",\"step\":1,\"loss\":1.0,\"grad_norm\":1.0}\n");  // of no launch
  record(0, 3, 0.5);
  append("{\"event\":\"step\",\"step\":4,\"lo\n\nnot JSON\n[1, 2]\n{\"event\":5}\n");
  append("{\"event\":\"step\",\"step\":\"5\",\"loss\":1.0,\"grad_norm\":1.0}\n");
  append("{\"event\":\"step\",\"step\":6,\"loss\":\"a\",\"grad_norm\":1.0}\n");
  append("{\"event\":\"step\",\"step\":7}\n");
  append("{\"event\":\"start\",\"first_step\":{},\"hosts\":7,\"bits\":[]}\n");
  append(std::string(100, '[') + "\n");
  append("{\"event\":\"step\",\"step\":8,\"loss\":1.5,\"grad_norm\":2.5}\n");
  append("{\"event\":\"step\",\"step\":9,\"loss\":3.5,\"grad");  // truncated by a crash
  const auto launches = read(1);
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(numbers(launches[0]), (std::vector<Index>{1, 2}));
  EXPECT_EQ(launches[1].bits, "");
  EXPECT_TRUE(launches[1].hosts.empty());
  EXPECT_EQ(numbers(launches[1]), (std::vector<Index>{8}));
}

TEST_F(RecordedLaunches, OfNoFileAreNone) {
  EXPECT_TRUE(read(0).empty());
  append("");
  EXPECT_TRUE(read(0).empty());
}

}  // namespace
}  // namespace kzero::metrics
