#include "metrics/progress.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace kzero::metrics {
namespace {

Progress progress() {
  StepRecord last{.step = 499, .loss = 9, .grad_norm = 0.9951, .lr = 3e-3, .loss_scale = 32768};
  return {last, 1000, 3.01342, 38512, 0.528, 25.4};
}

TEST(Progress, AStepLineHoldsAllValuesIn80Columns) {
  EXPECT_EQ(step_line(progress(), 80),
            "step  500/1000  loss 3.0134  norm  1.00  lr 3.0e-3   38.5 k tok/s  left 25s");
}

TEST(Progress, OfDocumentsTheTargetsAreCounted) {
  Progress documents = progress();
  documents.last.targets = 1234;
  EXPECT_EQ(step_line(documents, 95),
            "step  500/1000  loss 3.0134  norm  1.00  lr 3.0e-3   38.5 k tok/s     1234 targets  "
            "left 25s");
  EXPECT_EQ(step_line(documents, 80), step_line(progress(), 80)) << "they are left out first";
}

TEST(Progress, ValuesAreLeftOutOneByOneWhereTheWidthIsSmall) {
  EXPECT_EQ(step_line(progress(), 70),
            "step  500/1000  loss 3.0134  lr 3.0e-3   38.5 k tok/s  left 25s");
  EXPECT_EQ(step_line(progress(), 60), "step  500/1000  loss 3.0134   38.5 k tok/s  left 25s");
  EXPECT_EQ(step_line(progress(), 40), "step  500/1000  loss 3.0134  left 25s");
  EXPECT_EQ(step_line(progress(), 20), "step  500/1000");
  EXPECT_EQ(step_line(progress(), 10), "step  500/");
  EXPECT_EQ(step_line(progress(), 0), "");
}

TEST(Progress, ColumnsStayWhereTheyAre) {
  const auto places = [](const std::string& line) {
    std::vector<std::size_t> found;
    for (const char* word : {"loss ", "norm ", "lr ", " tok/s", "left "})
      found.push_back(line.find(word));
    return found;
  };
  const auto expected = places(step_line(progress(), 80));
  for (const double factor : {1e-9, 1e-3, 0.02, 1.0, 9.0, 77.0}) {
    Progress other = progress();
    other.last.step = static_cast<Index>(factor * 10);
    other.loss = 1.3 * factor;
    other.last.grad_norm = 20 * factor * factor;
    other.last.lr = 1e-3 * factor;
    other.tokens_per_second = 777 * factor * factor;
    other.seconds_left = 1e4 * factor;
    const std::string line = step_line(other, 80);
    // A rate below 1e-9 needs a longer exponent, and so do others without a meaning.
    if (factor > 1e-6) {
      EXPECT_EQ(places(line), expected) << line;
    }
    EXPECT_EQ(line.find_last_not_of(' ') + 1, line.size()) << line;
  }
}

TEST(Progress, CountsArePrintedForPeople) {
  EXPECT_EQ(format_count(0), "0");
  EXPECT_EQ(format_count(9999), "9999");
  EXPECT_EQ(format_count(84210), "84.2 k");
  EXPECT_EQ(format_count(999949), "999.9 k");
  EXPECT_EQ(format_count(999951), "1.0 M");
  EXPECT_EQ(format_count(5e9), "5.0 G");
  EXPECT_EQ(format_count(-2e6), "-2.0 M");
  EXPECT_EQ(format_count(12345e12), "12345.0 T");
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
  EXPECT_EQ(live_line(progress(), 39), "500/1000  loss 3.0134  left 25s   ");
  EXPECT_EQ(live_line(progress(), 63),
            "500/1000  loss 3.0134  lr 3.0e-3   38.5 k tok/s  left 25s   ");
  EXPECT_EQ(live_line(progress(), 79),
            "[========        ] 500/1000  loss 3.0134  lr 3.0e-3   38.5 k tok/s  left 25s   ");
  EXPECT_EQ(live_line(progress(), 99),
            "[======       ] "
            "500/1000  loss 3.0134  norm  1.00  lr 3.0e-3   38.5 k tok/s  MFU  53 %  left 25s   ");
  EXPECT_EQ(live_line(progress(), 199).size(), 40U + 3U + 83U) << "the bar's largest width";
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
