#include "metrics/console.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <sstream>

namespace kzero::metrics {
namespace {

StartRecord start_record() {
  return {.versions = {{"kzero", "0.1.0"}, {"git", "abc"}},
          .hosts = {"node7", "node7"},
          .deck_file = "input/a.toml",
          .data_ranks = 2,
          .threads = 3,
          .precision = "bf16",
          .parameters = 12345678,
          .steps = 100,
          .first_step = 40,
          .tokens_per_step = 2048,
          .data = {103, 10200000000, 9960937, 0.0123, 0},
          .planned_memory = {{"parameters", 1 << 20, 0}, {"workspace", 0, 0}, {"io", 1 << 19, 0}}};
}

StepRecord step_record(Index step) {
  return {.step = step,
          .loss = 2.5,
          .grad_norm = 0.75,
          .lr = 3e-4,
          .tokens = 2048,
          .seconds = 0.5,
          .tokens_per_second = 4096,
          .mfu = 0.314};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Console, TheHeaderSaysWhatRunsWhereAndHowMuchItHolds) {
  std::ostringstream out;
  Console(out, ConsoleMode::lines, 1).start(start_record());
  for (const char* part : {"kzero 0.1.0, git abc\n", "input/a.toml",
                           "2 data x 1 tensor ranks, 3 threads each, on 1 node node7",
                           "12.3 M parameters, bf16, ZeRO stage 0",
                           "1.50 MiB a rank: parameters 1.00 MiB, io 512.00 KiB\n",
                           "100 of 2048 tokens, going on at 40"}) {
    EXPECT_TRUE(has(out.str(), part)) << part << "\nin\n" << out.str();
  }
}

TEST(Console, TheHeaderSumsTheDataUp) {
  const auto header = [](Index validation_sequences) {
    std::ostringstream out;
    StartRecord record = start_record();
    record.data.validation_sequences = validation_sequences;
    Console(out, ConsoleMode::lines, 1).start(record);
    return out.str();
  };
  const std::string line =
      "data        10.2 G tokens in 103 files, 9960.9 k sequences, 0.0123 epochs\n";
  EXPECT_TRUE(has(header(0), line)) << header(0);
  EXPECT_FALSE(has(header(0), "validation"));
  EXPECT_TRUE(has(header(99609), line + "validation  99.6 k sequences\n")) << header(99609);
}

TEST(Console, TheHeaderSaysWhenTheRunStops) {
  const auto header = [](std::optional<TimeLimit> limit) {
    std::ostringstream out;
    StartRecord record = start_record();
    record.limit = std::move(limit);
    Console(out, ConsoleMode::lines, 1).start(record);
    return out.str();
  };
  EXPECT_FALSE(has(header(std::nullopt), "limit"));
  EXPECT_TRUE(
      has(header(TimeLimit{"run.wall_limit", 3600, 60}),
          "limit       1 h 00 min left by run.wall_limit; stops 1 min 00 s before its end\n"));
  EXPECT_TRUE(has(header(TimeLimit{"SLURM_JOB_END_TIME", 50, 60}),
                  "limit       50.0 s left by SLURM_JOB_END_TIME, run.stop_margin is 1 min 00 s: "
                  "stops after one step\n"));
}

TEST(Console, AStepLineHoldsProgressValuesAndTimeLeft) {
  std::ostringstream out;
  Console console(out, ConsoleMode::lines, 1);
  console.start(start_record());
  out.str("");
  console.step(step_record(9));
  EXPECT_EQ(out.str(),
            "step  10/100  loss 2.5000  norm 0.750  lr 3.00e-04  4096 tokens/s  MFU 31.4 %  left "
            "45.0 s\n");
}

TEST(Console, LinesComeEveryLogEveryAndAtTheEndAndForSkippedSteps) {
  std::ostringstream out;
  Console console(out, ConsoleMode::lines, 30);
  console.start(start_record());
  out.str("");
  for (Index step = 0; step < 100; ++step) {
    StepRecord record = step_record(step);
    record.skipped = step == 44;
    if (record.skipped) record.grad_norm = std::numeric_limits<double>::infinity();
    console.step(record);
  }
  const std::string text = out.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5) << text;
  for (const char* part : {"step  30/", "step  45/", "step  60/", "step  90/", "step 100/",
                           "skipped: gradients not finite"}) {
    EXPECT_TRUE(has(text, part)) << part;
  }
}

TEST(Console, PlainOutputHasNoControlCharacters) {
  std::ostringstream out;
  Console console(out, ConsoleMode::lines, 10);
  console.start(start_record());
  for (Index step = 0; step < 20; ++step) console.step(step_record(step));
  for (const char character : out.str()) EXPECT_TRUE(character >= ' ' || character == '\n');
}

TEST(Console, NamesCannotCommandTheTerminal) {
  std::ostringstream out;
  StartRecord record = start_record();
  record.deck_file = "a\x1b[2J.toml";
  Console console(out, ConsoleMode::lines, 1);
  console.start(record);
  console.note(
      "data.files is [\"\x9b"
      "2J\"]");
  EXPECT_TRUE(has(out.str(), "a\\x1b[2J.toml\n")) << out.str();
  EXPECT_TRUE(has(out.str(), "[\"\\x9b2J\"]\n")) << out.str();
}

TEST(Console, TheBarFitsATerminalAndIsErasedBeforeALine) {
  std::ostringstream out;
  Console console(out, ConsoleMode::bar, 1000);
  console.start(start_record());
  out.str("");
  console.step(step_record(49));
  const std::string bar = out.str();
  EXPECT_EQ(bar, "\r[============            ] step 50/100  loss 2.5000  left 25.0 s\x1b[K");
  EXPECT_LT(bar.size(), 80U);
  out.str("");
  console.note("hello");
  EXPECT_EQ(out.str(), "\r\x1b[Khello\n");
}

TEST(Console, OtherRanksPrintNothing) {
  EXPECT_EQ(console_mode(1), ConsoleMode::silent);
  std::ostringstream out;
  Console console(out, ConsoleMode::silent, 1);
  console.start(start_record());
  console.step(step_record(0));
  console.validation({});
  console.checkpoint({});
  console.note("hello");
  console.end({.reason = "completed", .memory = {{}}});
  EXPECT_EQ(out.str(), "");
}

TEST(Console, ValidationAndCheckpointHaveTheirLines) {
  std::ostringstream out;
  Console console(out, ConsoleMode::lines, 1);
  console.validation({.step = 50, .loss = 2.25, .tokens = 20000, .seconds = 1.5});
  CheckpointRecord saved{.step = 60,
                         .folder = "runs/a/step_00000060",
                         .bytes = 3 << 20,
                         .seconds = 0.25,
                         .stall_seconds = 0.25};
  console.checkpoint(saved);
  saved.stall_seconds = 0.1;
  console.checkpoint(saved);
  EXPECT_EQ(out.str(),
            "validation after 50 steps: loss 2.2500 over 20.0 k tokens, 1.5 s\n"
            "checkpoint after 60 steps: runs/a/step_00000060, 3.00 MiB in 0.2 s\n"
            "checkpoint after 60 steps: runs/a/step_00000060, 3.00 MiB in 0.2 s, training waited "
            "0.1 s\n");
}

TEST(Console, TheSummaryShowsTheFullestRankAndNamesWhatDiffersFromThePlan) {
  std::ostringstream out;
  Console console(out, ConsoleMode::lines, 1);
  console.start(start_record());
  out.str("");
  console.end({.reason = "wall_limit",
               .steps = 60,
               .seconds = 75,
               .memory = {{0, 64 << 20, 3 << 20, {{"parameters", 1024, 1024}, {"io", 0, 0}}},
                          {1, 32 << 20, 0, {{"parameters", 1024, 2048}, {"io", 0, 0}}}},
               .traffic = {{"data", "reduce_scatter", "gradients", 1000, 4000, 1000}}});
  const std::string text = out.str();
  for (const char* part :
       {"memory of rank 1", "1.00 KiB      2.00 KiB  differs from the plan",
        "64.00 MiB  whole process, most on rank 0", "3.00 MiB of it before the first slab",
        "reduce_scatter", "3.91 KiB", "wall_limit after 60 of 100 steps, 1 min 15 s\n"}) {
    EXPECT_TRUE(has(text, part)) << part << "\nin\n" << text;
  }
  EXPECT_FALSE(has(text, "io ")) << "a category that holds nothing is noise";
}

TEST(Console, SecondsArePrintedForPeople) {
  EXPECT_EQ(format_seconds(0.04), "0.0 s");
  EXPECT_EQ(format_seconds(59.94), "59.9 s");
  EXPECT_EQ(format_seconds(59.96), "1 min 00 s");
  EXPECT_EQ(format_seconds(3599.4), "59 min 59 s");
  EXPECT_EQ(format_seconds(7499), "2 h 05 min");
}

}  // namespace
}  // namespace kzero::metrics
