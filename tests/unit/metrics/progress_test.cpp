#include "metrics/progress.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace kzero::metrics {
namespace {

Progress progress() {
  StepRecord last{.step = 499, .loss = 9, .grad_norm = 0.9951, .lr = 3e-3, .loss_scale = 32768};
  return {last, 1000, 3.01342, 38512, 0.528, 25.4};
}

TEST(Progress, AStepLineHoldsAllValuesIn80Columns) {
  EXPECT_EQ(step_line(progress(), 80),
            "step  500/1000  loss 3.0134  norm 1.00  lr 3.0e-3  38.5 k tok/s  left 25s");
}

TEST(Progress, OfDocumentsTheTargetsAreCounted) {
  Progress documents = progress();
  documents.last.targets = 1234;
  EXPECT_EQ(step_line(documents, 90),
            "step  500/1000  loss 3.0134  norm 1.00  lr 3.0e-3  38.5 k tok/s  1234 targets  "
            "left 25s");
  EXPECT_EQ(step_line(documents, 80), step_line(progress(), 80)) << "they are left out first";
}

TEST(Progress, ValuesAreLeftOutOneByOneWhereTheWidthIsSmall) {
  EXPECT_EQ(step_line(progress(), 70),
            "step  500/1000  loss 3.0134  lr 3.0e-3  38.5 k tok/s  left 25s");
  EXPECT_EQ(step_line(progress(), 60), "step  500/1000  loss 3.0134  38.5 k tok/s  left 25s");
  EXPECT_EQ(step_line(progress(), 40), "step  500/1000  loss 3.0134  left 25s");
  EXPECT_EQ(step_line(progress(), 20), "step  500/1000");
  EXPECT_EQ(step_line(progress(), 10), "step  500/");
  EXPECT_EQ(step_line(progress(), 0), "");
}

TEST(Progress, ASkippedStepSaysWhy) {
  Progress skipped = progress();
  skipped.last.skipped = true;
  EXPECT_EQ(step_line(skipped, 80),
            "step  500/1000  skipped: gradients not finite  loss scale 32768");
  skipped.last.norm_limit = 6.25, skipped.last.grad_norm = 9;
  EXPECT_EQ(step_line(skipped, 80), "step  500/1000  skipped: norm 9.00 is above 6.25");
  skipped.last.grad_norm = std::numeric_limits<double>::infinity();
  EXPECT_EQ(step_line(skipped, 80),
            "step  500/1000  skipped: gradients not finite  loss scale 32768");
  skipped.last.targets = 0;
  EXPECT_EQ(step_line(skipped, 80), "step  500/1000  skipped: no targets");
}

TEST(Progress, TheLiveLineHasABarWhereThereIsRoom) {
  EXPECT_EQ(live_line(progress(), 39), "500/1000  loss 3.0134  left 25s");
  EXPECT_EQ(live_line(progress(), 63), "500/1000  loss 3.0134  lr 3.0e-3  38.5 k tok/s  left 25s");
  EXPECT_EQ(live_line(progress(), 79),
            "[==========          ] 500/1000  loss 3.0134  lr 3.0e-3  38.5 k tok/s  left 25s");
  EXPECT_EQ(live_line(progress(), 99),
            "[=========          ] "
            "500/1000  loss 3.0134  norm 1.00  lr 3.0e-3  38.5 k tok/s  MFU 53 %  left 25s");
  EXPECT_EQ(live_line(progress(), 199).size(), 40U + 3U + 77U) << "the bar's largest width";
}

TEST(Progress, SecondsArePrintedForPeople) {
  EXPECT_EQ(format_seconds(0.04), "0.0 s");
  EXPECT_EQ(format_seconds(59.94), "59.9 s");
  EXPECT_EQ(format_seconds(59.96), "1 min 00 s");
  EXPECT_EQ(format_seconds(3599.4), "59 min 59 s");
  EXPECT_EQ(format_seconds(7499), "2 h 05 min");
  EXPECT_EQ(format_short_seconds(0.4), "0s");
  EXPECT_EQ(format_short_seconds(59.6), "1m00s");
  EXPECT_EQ(format_short_seconds(7499), "2h05m");
  EXPECT_EQ(format_short_seconds(103.0 * 3600), "4d07h");
}

}  // namespace
}  // namespace kzero::metrics
