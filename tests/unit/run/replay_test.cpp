#include "run/replay.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

#include "base/checksum.hpp"
#include "engine/engine.hpp"
#include "metrics/jsonl_sink.hpp"
#include "support/checkpoints.hpp"
#include "support/error_text.hpp"

namespace kzero::tests {
namespace {

using engine::StepResult;

constexpr Index first = 10;  // the steps done at the checkpoint
constexpr std::uint64_t loaded = 0xabc;

StepResult expected(Index step) {
  return {.loss = 0.1 + static_cast<double>(step), .grad_norm = 1.0 / 3};
}

class Replay : public testing::Test {
 protected:
  Replay() {
    config.run.metrics = folder.path() / "metrics.jsonl";
    config.run.replay = deck::Replay::check;
  }

  /// Appends a launch of steps [begin, end) that saved the state `saved` after step number `at`.
  void record(const metrics::StartRecord& start, Index end, Index at = 0, std::uint64_t saved = 0,
              Index wrong = -1) const {
    if (!group.is_root()) return;
    metrics::JsonlSink sink(config.run.metrics);
    sink.write(start);
    for (Index step = start.first_step; step < end; ++step) {
      StepResult result = expected(step);
      if (step == wrong) result.loss += 1;
      const Index batch = step < other_from ? config.train.global_batch : 2;
      sink.write(metrics::StepRecord{.step = step,
                                     .loss = result.loss,
                                     .grad_norm = result.grad_norm,
                                     .tokens = batch * config.model.sequence});
      if (step + 1 == at)
        sink.write(metrics::CheckpointRecord{.step = at, .state = format_checksum(saved)});
    }
  }

  /// Records the launch that saved the checkpoint and continued to step `end`.
  void record_saver(Index end, Index wrong = -1) const {
    record({.hosts = {"node1", "node2", "node1"}, .bits = "same"}, end, first, loaded, wrong);
  }

  /// Runs [first, end) as expected(), except for the effect of `change`. Returns the run's final
  /// message.
  std::string problem(Index end, const std::vector<std::string>& bit_changes = {},
                      const std::function<void(Index, StepResult&)>& change = {}) {
    group.barrier();  // waits until the file is written
    std::ostringstream out;
    metrics::Console console(out, metrics::plain_screen(group.rank()), 1);
    std::string text;
    try {
      const std::optional<run::Resumed> from = run::Resumed{first, loaded, bit_changes};
      run::Replay replay(config, group, from, "same", console);
      for (Index step = first; step < end; ++step) {
        StepResult result = expected(step);
        if (change) change(step, result);
        replay.compare(step, result);
      }
    } catch (const engine::Mismatch& mismatch) {
      EXPECT_EQ(mismatch.reason(), "replay");
      EXPECT_EQ(mismatch.code(), ExitCode::other);
      text = mismatch.what();
    }
    notes = group.broadcast(out.str());
    return text;
  }

  static std::function<void(Index, StepResult&)> added(Index at, double more) {
    return [=](Index step, StepResult& result) {
      if (step == at) result.loss += more;
    };
  }

  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder folder{group};
  deck::Config config;
  Index other_from = 1000;  // the first step of later records whose batch is another one
  std::string notes;
};

TEST_F(Replay, OfTheSameStepsIsSilentToItsEnd) {
  record_saver(15);
  EXPECT_EQ(problem(20), "");
  EXPECT_TRUE(contains(notes, "steps 10 to 14 are compared with " + config.run.metrics)) << notes;
  EXPECT_TRUE(contains(notes, "the steps up to 14 came out as recorded")) << notes;
}

TEST_F(Replay, StopsAtTheFirstDifferenceOnEveryRank) {
  record_saver(15);
  const auto two_wrong = [](Index step, StepResult& result) {
    if (step == 12) result.grad_norm = 0.5;
    if (step == 13) result.loss = 9;
  };
  const std::string text = problem(20, {}, two_wrong);
  for (const std::string& part :
       {std::string("run.replay: step 12 came out differently: loss 12.1, recorded 12.1; grad_norm "
                    "0.5, recorded 0.3333333333333333 (in "),
        config.run.metrics, std::string("before on node1, node2: "),
        std::string("Start the run again: a third result")})
    EXPECT_TRUE(contains(text, part)) << part << " in " << text;
}

TEST_F(Replay, MayOnlyNoteTheDifference) {
  record_saver(15);
  config.run.replay = deck::Replay::note;
  EXPECT_EQ(problem(20, {}, added(12, 1e-9)), "");
  EXPECT_TRUE(contains(notes, "warning     run.replay: step 12 came out differently")) << notes;
  EXPECT_FALSE(contains(notes, "came out as recorded")) << notes;
  config.run.replay = deck::Replay::off;
  EXPECT_EQ(problem(20, {}, added(12, 1e-9)), "");
  EXPECT_EQ(notes, "");
}

TEST_F(Replay, TakesEverythingThatIsNotFiniteForTheSame) {
  if (group.is_root()) {
    metrics::JsonlSink sink(config.run.metrics);
    sink.write(metrics::StartRecord{
        .first_step = first, .bits = "same", .state = format_checksum(loaded)});
    sink.write(metrics::StepRecord{.step = first,
                                   .loss = expected(first).loss,
                                   .grad_norm = std::numeric_limits<double>::quiet_NaN(),
                                   .tokens = config.train.global_batch * config.model.sequence,
                                   .skipped = true});
  }
  EXPECT_EQ(problem(12, {},
                    [](Index, StepResult& result) {
                      result.grad_norm = std::numeric_limits<double>::infinity();
                    }),
            "");
  EXPECT_TRUE(contains(problem(12), "grad_norm 0.3333333333333333, recorded nan"));
}

// The second launch was wrong in step 12. The file contains both results.
TEST_F(Replay, TakesAResultThatALaunchHadForRight) {
  record_saver(15);
  record(
      {.hosts = {"node7"}, .first_step = first, .bits = "same", .state = format_checksum(loaded)},
      13, 0, 0, 12);
  EXPECT_EQ(problem(20), "");
  EXPECT_TRUE(contains(notes,
                       "step 12 agrees with an earlier launch; another one, on node7, had "
                       "loss 13.1"))
      << notes;
  EXPECT_EQ(problem(20, {}, added(12, 1)), "");
  EXPECT_TRUE(contains(notes, "another one, on node1, node2, had loss 12.1")) << notes;
  EXPECT_TRUE(contains(problem(20, {}, added(12, 2)), "loss 14.1, recorded 13.1")) << "the newest";
}

TEST_F(Replay, LeavesOutWhatWasComputedFromSomethingElse) {
  record_saver(15);
  const std::string state = format_checksum(loaded);
  record({.first_step = first, .bits = "others", .state = state}, 18, 0, 0, 11);
  record({.first_step = first, .bits = "same", .state = format_checksum(7)}, 18, 0, 0, 11);
  record({.first_step = 12, .bits = "same", .state = state}, 18, 0, 0, 14);
  record({.first_step = 13}, 18, 0, 0, 13);  // of an older version
  EXPECT_EQ(problem(20, {}, added(15, 3)), "");
  EXPECT_TRUE(contains(notes, "steps 10 to 14 are compared")) << notes;
  EXPECT_TRUE(contains(notes, "27 recorded steps from 10 on cannot be compared")) << notes;
  EXPECT_TRUE(contains(problem(20, {}, added(11, 1)), "step 11 came out"));
}

// A later checkpoint saved by a launch of the same line also belongs to the line.
TEST_F(Replay, FollowsCheckpointsFromLaunchToLaunch) {
  record_saver(13);
  record({.first_step = first, .bits = "same", .state = format_checksum(loaded)}, 16, 14, 0x14e);
  record({.first_step = 14, .bits = "same", .state = format_checksum(0x14e)}, 18);
  EXPECT_EQ(problem(20), "");
  EXPECT_TRUE(contains(notes, "steps 10 to 17 are compared")) << notes;
}

TEST_F(Replay, EndsWhereALaunchHadAnotherBatch) {
  other_from = 13;
  record_saver(15);
  record({.first_step = first, .bits = "same", .state = format_checksum(loaded)}, 16, 14, 0x14e);
  other_from = 1000;
  record({.first_step = 14, .bits = "same", .state = format_checksum(0x14e)}, 18);
  EXPECT_EQ(problem(20, {}, added(13, 1)), "");
  EXPECT_TRUE(contains(notes, "steps 10 to 12 are compared")) << notes;
  EXPECT_TRUE(contains(notes, "9 recorded steps from 10 on cannot be compared")) << notes;
  EXPECT_TRUE(contains(problem(20, {}, added(12, 1)), "step 12 came out differently"));
}

TEST_F(Replay, IsNotCheckedIfTheBitsMayDiffer) {
  record_saver(15);
  EXPECT_EQ(problem(20, {"grid.tensor is 2, was 1"}, added(12, 1)), "");
  EXPECT_TRUE(contains(notes, "is not checked, as the run does not resume bit for bit")) << notes;
}

TEST_F(Replay, OfNothingIsNothing) {
  EXPECT_EQ(problem(20), "");
  record_saver(first);
  EXPECT_EQ(problem(20), "");
  EXPECT_EQ(notes, "");
}

}  // namespace
}  // namespace kzero::tests
