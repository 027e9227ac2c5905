#include "run/loss_range.hpp"

#include <gtest/gtest.h>

#include "support/checkpoints.hpp"
#include "support/error_text.hpp"

namespace kzero::tests {
namespace {

namespace fs = std::filesystem;
using run::LossRange;

TEST(ReturnAdvice, QuotesPathsForAShell) {
  EXPECT_EQ(run::shell_word("runs/a-1/step_00000020"), "runs/a-1/step_00000020");
  EXPECT_EQ(run::shell_word("my runs"), "'my runs'");
  EXPECT_EQ(run::shell_word("Ann's;x"), "'Ann'\\''s;x'");
  EXPECT_EQ(run::shell_word("-rf"), "./-rf");
}

TEST(ReturnAdvice, NamesTheNewestSaneCheckpointAndACommandThatWorks) {
  const grid::Group group = first_ranks(launch_ranks());
  const SharedFolder shared(group);
  const fs::path folder = shared.path() / "two words";
  Training training(small_deck(), group);
  training.engine->initialise({});
  LossRange losses;
  for (Index step = 0; step < 15; ++step) {
    losses.add(step, step < 12 ? 3 - 0.01 * static_cast<double>(step) : 50);
    if (step >= 9)
      save(training, group, folder, step + 1, training.engine->owned_shards(), losses.record());
  }
  EXPECT_TRUE(run::has_left_range(losses, 15));
  EXPECT_FALSE(run::has_left_range(losses, 12));
  group.barrier();
  if (group.is_root()) {
    const std::string text = run::return_advice(folder, 15, losses);
    EXPECT_TRUE(contains(text, "the loss left its range after step 11: in step 14 it was 50"))
        << text;
    EXPECT_TRUE(contains(text, "step_00000011 is the newest checkpoint from before that")) << text;
    const std::string words = "; to go back to it: ";
    const std::size_t at = text.find(words);
    ASSERT_NE(at, std::string::npos) << text;
    const std::string command = text.substr(at + words.size());
    for (int i = 0; i < 2; ++i) {
      ASSERT_EQ(std::system(command.c_str()), 0) << command;
      EXPECT_TRUE(fs::exists(folder / "step_00000011"));
      EXPECT_FALSE(fs::exists(folder / "step_00000012"));
      EXPECT_TRUE(fs::exists(folder / "after_step_00000011" / "step_00000015"));
      if (i == 0) {
        EXPECT_TRUE(
            contains(run::return_advice(folder, 15, losses), "the next run begins with it"));
        // The training fails again at the same step.
        fs::rename(folder / "after_step_00000011", folder / "elsewhere");
        for (const auto& entry : fs::directory_iterator(folder / "elsewhere"))
          fs::rename(entry.path(), folder / entry.path().filename());
      }
    }
    fs::create_directories(folder / "step_00000012");
    EXPECT_TRUE(contains(run::return_advice(folder, 15, losses), "after_step_00000011_2'"))
        << "no checkpoint is moved onto another";
    EXPECT_TRUE(contains(run::return_advice(folder, 9, losses), "No checkpoint in "));
  }
  EXPECT_EQ(run::return_advice("", 15, losses), "");
}

}  // namespace
}  // namespace kzero::tests
