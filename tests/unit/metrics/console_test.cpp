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
  Console(out, Screen{}, 1).start(start_record());
  for (const char* part : {"kzero 0.1.0, git abc\n", "input/a.toml",
                           "2 data x 1 tensor ranks, 3 threads each, on 1 node node7",
                           "12.3 M parameters, bf16, ZeRO stage 0",
                           "1.50 MiB a rank: parameters 1.00 MiB, io 512.00 KiB\n",
                           "100 of 2048 tokens, resuming at 40"}) {
    EXPECT_TRUE(has(out.str(), part)) << part << "\nin\n" << out.str();
  }
}

TEST(Console, TheHeaderSumsTheDataUp) {
  const auto header = [](Index validation_sequences) {
    std::ostringstream out;
    StartRecord record = start_record();
    record.data.validation_sequences = validation_sequences;
    Console(out, Screen{}, 1).start(record);
    return out.str();
  };
  const std::string line =
      "data        10.2 G tokens in 103 files, 10.0 M sequences, 0.0123 epochs\n";
  EXPECT_TRUE(has(header(0), line)) << header(0);
  EXPECT_FALSE(has(header(0), "validation"));
  EXPECT_TRUE(has(header(99609), line + "validation  99.6 k sequences\n")) << header(99609);
}

TEST(Console, TheHeaderHasALineForEachSourceAndEvaluation) {
  std::ostringstream out;
  StartRecord record = start_record();
  record.data.sources = {{"web", 0.725, 3, 5000, 300, 1.5}, {"books", 0.275, 1, 70, 6, 20}};
  record.data.evaluations = {{"held out", 1, 700, 40}};
  Console(out, Screen{}, 1).start(record);
  EXPECT_TRUE(has(out.str(),
                  "            72.5 % web: 5000 tokens in 3 files, 300 sequences, 1.5 epochs\n"
                  "            27.5 % books: 70 tokens in 1 file, 6 sequences, 20 epochs\n"
                  "evaluation  held out: 700 tokens in 1 file, 40 sequences\n"))
      << out.str();
}

TEST(Console, TheHeaderSaysWhenTheRunStops) {
  const auto header = [](std::optional<TimeLimit> limit) {
    std::ostringstream out;
    StartRecord record = start_record();
    record.limit = std::move(limit);
    Console(out, Screen{}, 1).start(record);
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
  Console console(out, Screen{}, 1);
  console.start(start_record());
  out.str("");
  console.step(step_record(9));
  EXPECT_EQ(out.str(),
            "step  10/100  loss 2.5000  norm  0.75  lr 3.0e-4     4096 tok/s  left 45s\n");
}

TEST(Console, LossAndRateAreMeansSinceTheLineBefore) {
  std::ostringstream out;
  Console console(out, Screen{}, 2);
  console.start(start_record());
  for (Index step = 0; step < 4; ++step) {
    StepRecord record = step_record(step);
    record.loss = static_cast<double>(step);
    record.seconds = step < 2 ? 1.0 : 0.25 + 0.5 * static_cast<double>(step - 2);
    record.tokens_per_second = 1e9;  // of one step only
    out.str("");
    console.step(record);
    if (step % 2 == 0) continue;
    const char* means = step == 1 ? "loss 0.5000  norm  0.75  lr 3.0e-4     2048 tok/s"
                                  : "loss 2.5000  norm  0.75  lr 3.0e-4     4096 tok/s";
    EXPECT_TRUE(has(out.str(), means)) << out.str();
  }
}

TEST(Console, ASkippedStepNeitherEndsTheIntervalNorCountsInItsLoss) {
  std::ostringstream out;
  Console console(out, Screen{}, 3);
  console.start(start_record());
  for (Index step = 0; step < 3; ++step) {
    StepRecord record = step_record(step);
    record.loss = step == 1 ? std::numeric_limits<double>::quiet_NaN() : static_cast<double>(step);
    record.skipped = step == 1;
    console.step(record);
  }
  EXPECT_TRUE(has(out.str(), "step   3/100  loss 1.0000")) << out.str();
}

TEST(Console, LinesComeEveryLogEveryAndAtTheEndAndForSkippedSteps) {
  std::ostringstream out;
  Console console(out, Screen{}, 30);
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
  Console console(out, Screen{}, 10);
  console.start(start_record());
  for (Index step = 0; step < 20; ++step) console.step(step_record(step));
  for (const char character : out.str()) EXPECT_TRUE(character >= ' ' || character == '\n');
}

TEST(Console, NamesCannotCommandTheTerminal) {
  std::ostringstream out;
  StartRecord record = start_record();
  record.deck_file = "a\x1b[2J.toml";
  Console console(out, Screen{}, 1);
  console.start(record);
  console.note(
      "data.files is [\"\x9b"
      "2J\"]");
  EXPECT_TRUE(has(out.str(), "a\\x1b[2J.toml\n")) << out.str();
  EXPECT_TRUE(has(out.str(), "[\"\\x9b2J\"]\n")) << out.str();
}

TEST(Console, TheLiveLineIsRedrawnBelowTheLinesAndErasedAtTheEnd) {
  std::ostringstream out;
  {
    Console console(out, Screen{ConsoleMode::live, [] { return Index{60}; }}, 1000);
    console.start(start_record());
    out.str("");
    console.step(step_record(49));
    const std::string live = "50/100  loss 2.5000  lr 3.0e-4     4096 tok/s  left 25s   \r";
    EXPECT_EQ(out.str(), live);
    out.str("");
    console.note("hello");
    EXPECT_EQ(out.str(), "\r\x1b[Jhello\n" + live);
    out.str("");
  }
  EXPECT_EQ(out.str(), "\r\x1b[J") << "what follows on the screen must not meet its rest";
}

TEST(Console, TheLiveLineFitsWhateverTheWidthIsNow) {
  std::ostringstream out;
  Index columns = 0;
  Console console(out, Screen{ConsoleMode::live, [&] { return columns; }}, 1000);
  StartRecord start = start_record();
  start.steps = 1000000;
  console.start(start);
  for (columns = 40; columns <= 220; ++columns) {
    StepRecord record = step_record(123456 + columns);
    record.loss = 10.9876;
    out.str("");
    console.step(record);
    const std::string text = out.str();
    const std::size_t begin = text.rfind("\x1b[J");
    const std::string live = begin == std::string::npos ? text : text.substr(begin + 3);
    EXPECT_LT(live.size() - 1, static_cast<std::size_t>(columns)) << live;
    EXPECT_TRUE(has(live, "/1000000  loss 10.988")) << live;
    EXPECT_EQ(live.back(), '\r');
    EXPECT_TRUE(columns < 80 || has(live, "4096 tok/s")) << live;
    EXPECT_TRUE(columns < 120 || has(live, "MFU  31 %")) << live;
  }
}

TEST(Console, AnUnknownWidthIsTakenFor80Columns) {
  std::ostringstream out;
  Console console(out, Screen{ConsoleMode::live}, 1000);
  console.start(start_record());
  out.str("");
  console.step(step_record(49));
  EXPECT_GT(out.str().size(), 60U);
  EXPECT_LE(out.str().size(), 80U) << "79 characters and the return";
}

TEST(Console, ShortStepsAreNotAllDrawn) {
  std::ostringstream out;
  Console console(out, Screen{ConsoleMode::live}, 100000);
  console.start(start_record());
  out.str("");
  for (Index step = 0; step < 50; ++step) {
    StepRecord record = step_record(step);
    record.seconds = 0.01;
    console.step(record);
  }
  const std::string text = out.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 2 * 5) << text;
  EXPECT_TRUE(has(text, " 45/100")) << text;
}

TEST(Console, StepAndMemoryLinesFit80Columns) {
  const Index huge = Index{123} << 40;
  std::ostringstream out;
  Console console(out, Screen{}, 1, Detail::tables);
  StartRecord start = start_record();
  start.steps = 1000000;
  start.planned_memory.clear();
  for (const char* name : {"parameters", "gradients", "optimizer", "activations", "recompute",
                           "buckets", "workspace", "io", "offloaded"})
    start.planned_memory.push_back({name, huge, huge - 1024});
  console.start(start);
  StepRecord record = step_record(654321);
  record.loss = 10.9876;
  record.grad_norm = 123456;
  record.tokens_per_second = 987.6e6;
  console.step(record);
  record.skipped = true;
  record.loss_scale = 16777216;
  console.step(record);
  console.end(
      {.reason = "completed",
       .steps = 1000000,
       .memory = {{123456, huge * 20, huge, start.planned_memory}},
       .traffic = {{"tensor", "reduce_scatter", "activations", 9876543210, huge, 9876543210}}});
  std::istringstream lines(out.str());
  ASSERT_TRUE(has(out.str(), "differs from the plan"));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80U) << line;
}

TEST(Console, ARunWithNothingToDoSaysSo) {
  std::ostringstream out;
  Console console(out, Screen{}, 1);
  console.start({.steps = 200, .first_step = 320});
  out.str("");
  console.end({.reason = "nothing_to_do", .steps = 320});
  EXPECT_EQ(out.str(), "already at step 320 of 200: nothing to do\n");
}

TEST(Console, OtherRanksPrintNothing) {
  for (const Screen& screen : {found_screen(1), live_screen(1), plain_screen(1)})
    EXPECT_EQ(screen.mode, ConsoleMode::silent);
  std::ostringstream out;
  Console console(out, plain_screen(1), 1);
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
  Console console(out, Screen{}, 1);
  console.validation({.step = 50, .loss = 2.25, .tokens = 20000, .seconds = 1.5});
  console.evaluation({.name = "held out", .step = 50, .loss = 3.5, .tokens = 700, .seconds = 0.25});
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
            "evaluation held out after 50 steps: loss 3.5000 over 700 tokens, 0.2 s\n"
            "checkpoint after 60 steps: runs/a/step_00000060, 3.00 MiB in 0.2 s\n"
            "checkpoint after 60 steps: runs/a/step_00000060, 3.00 MiB in 0.2 s, training waited "
            "0.1 s\n");
}

/// The summary of a run of two ranks that kept its plan.
EndRecord end_record() {
  return {.reason = "wall_limit",
          .steps = 60,
          .seconds = 75,
          .memory = {{0, 64 << 20, 3 << 20, {{"parameters", 1024, 1024}, {"io", 0, 0}}},
                     {1, 32 << 20, 0, {{"parameters", 2048, 2048}, {"io", 0, 0}}}},
          .traffic = {{"data", "reduce_scatter", "gradients", 1000, 4000, 1000},
                      {"data", "all_gather", "parameters", 1000, 2000, 1000}}};
}

std::string summary(const EndRecord& record, Detail detail = Detail::brief) {
  std::ostringstream out;
  Console console(out, Screen{}, 1, detail);
  console.start(start_record());
  console.step(step_record(59));
  out.str("");
  console.end(record);
  return out.str();
}

TEST(Console, TheSummaryIsShortIfTheRunKeptItsPlan) {
  EXPECT_EQ(summary(end_record()),
            "memory      used = planned, 2.00 KiB a rank; resident at most 64.00 MiB\n"
            "traffic     counted = expected, 5.86 KiB sent a step and rank\n"
            "steps of this job   4096 tokens/s, MFU 31.4 %\n"
            "wall_limit after 60 of 100 steps, 1 min 15 s\n"
            "loss        training 2.5000 in the last step\n");
  EndRecord record = end_record();
  record.traffic[0].bytes_between_nodes_per_step = 512;
  record.traffic[0].expected_bytes_between_nodes_per_step = 512;
  EXPECT_TRUE(has(summary(record), " sent a step and rank, 512 B leave the node\n"))
      << summary(record);
}

TEST(Console, TheSummaryHasTheEnergyIfItIsMeasured) {
  EndRecord record = end_record();
  record.energy = {1'234'000, 0.0456, 310.4, {"NVML", "RAPL"}, 3, 3, 8, 8};
  EXPECT_TRUE(has(summary(record), "energy      1.2 MJ, 45.6 mJ a token, 310 W by NVML RAPL\n"))
      << summary(record);
  record.energy = {999, {}, 99, {"RAPL"}, 3, 2, 8, 7};
  EXPECT_TRUE(
      has(summary(record), "energy      999.0 J, 99 W by RAPL, 2 of 3 nodes, 7 of 8 devices\n"))
      << summary(record);
  record.energy->joules = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(has(summary(record), "energy      not known: a counter could not be read any more\n"))
      << summary(record);
}

TEST(Console, TheSummaryHasTablesOnRequest) {
  const std::string text = summary(end_record(), Detail::tables);
  for (const char* part :
       {"memory of rank 1", "2.00 KiB      2.00 KiB\n", "64.00 MiB  whole process, most on rank 0",
        "3.00 MiB  of it\n", "reduce_scatter", "3.91 KiB"}) {
    EXPECT_TRUE(has(text, part)) << part << "\nin\n" << text;
  }
  EXPECT_FALSE(has(text, "io ")) << "a category that holds nothing is noise";
  EXPECT_FALSE(has(text, "differ")) << text;
}

TEST(Console, TheSummaryWarnsOfWhatDiffersFromThePlan) {
  EndRecord record = end_record();
  record.memory[0].categories[0].peak_bytes = 1536;  // not of the fullest rank
  std::string text = summary(record);
  for (const char* part :
       {"warning     memory of rank 0 differs from the plan: parameters\nmemory of rank 0",
        "1.00 KiB      1.50 KiB  differs from the plan\n", "traffic     counted = expected"}) {
    EXPECT_TRUE(has(text, part)) << part << "\nin\n" << text;
  }
  for (const bool between_nodes : {false, true}) {
    record = end_record();
    TrafficRow& row = record.traffic[1];
    (between_nodes ? row.bytes_between_nodes_per_step : row.elements_per_step) = 999;
    text = summary(record);
    for (const char* part : {"memory      used = planned",
                             "warning     traffic is not as expected: all_gather of "
                             "parameters over data\ntraffic a step and rank, sent"}) {
      EXPECT_TRUE(has(text, part)) << part << "\nin\n" << text;
    }
  }
}

TEST(Console, TrafficIsNotComparedIfNoStepWasApplied) {
  std::ostringstream out;
  Console console(out, Screen{}, 1);
  console.start(start_record());
  StepRecord skipped = step_record(40);
  skipped.skipped = true;
  console.step(skipped);
  EndRecord record = end_record();
  record.traffic[1].elements_per_step = 0;  // parameters are gathered after an update
  console.end(record);
  EXPECT_FALSE(has(out.str(), "traffic")) << out.str();
}

TEST(Console, TheSummaryEndsWithTheLosses) {
  std::ostringstream out;
  Console console(out, Screen{}, 2);
  StartRecord start = start_record();
  start.first_step = 0;
  console.start(start);
  console.validation({.step = 0, .loss = 5.5});
  console.evaluation({.name = "validation", .step = 0, .loss = 7.25});
  for (Index step = 0; step < 4; ++step) {
    StepRecord record = step_record(step);
    record.loss = 4.0 - static_cast<double>(step);
    console.step(record);
    console.validation({.step = step + 1, .loss = 5 - 0.25 * static_cast<double>(step)});
  }
  console.evaluation({.name = "held out", .step = 4, .loss = 3.5});
  console.end({.reason = "completed", .steps = 4, .seconds = 1});
  EXPECT_TRUE(has(out.str(),
                  "completed after 4 of 100 steps, 1.0 s\n"
                  "loss        training 1.5000 over the last 2 steps,\n"
                  "            validation 4.2500 (5.5000 before the first step),\n"
                  "            evaluation validation 7.2500 before the first step,\n"
                  "            evaluation held out 3.5000\n"))
      << out.str();
}

TEST(Console, ThePeakSaysWhereItIsFrom) {
  const auto shown = [](const Peak& peak) {
    std::ostringstream out;
    Console console(out, Screen{}, 100);
    StartRecord record = start_record();
    record.peak = peak;
    console.start(record);
    console.step(step_record(40));
    console.end({.reason = "max_steps", .steps = 41, .seconds = 2.5});
    return out.str();
  };
  const std::string given = shown({.flops_per_second = 2e11});
  EXPECT_TRUE(has(given, "peak        100.0 GFLOP/s a rank, by run.peak_tflops\n")) << given;
  EXPECT_TRUE(has(given, ", MFU 31.4 %\n")) << given;
  const std::string measured = shown({.flops_per_second = 2e11, .measured_width = 768});
  EXPECT_TRUE(has(measured, "by products of 768 x 768 on all ranks at once\n")) << measured;
  EXPECT_TRUE(has(measured, ", MFU 31.4 % of the measured peak\n")) << measured;
  const std::string disturbed =
      shown({.flops_per_second = 2e11, .measured_width = 768, .is_disturbed = true});
  EXPECT_TRUE(has(disturbed, "at once;\n            other work disturbed them")) << disturbed;
}

TEST(Console, TheSummarySaysHowFastTheStepsWere) {
  std::ostringstream out;
  Console console(out, Screen{}, 100);
  console.start(start_record());
  console.step(step_record(40));
  StepRecord slow = step_record(41);
  slow.seconds = 1.5;
  slow.mfu = 0.114;
  console.step(slow);
  console.end({.reason = "max_steps", .steps = 42, .seconds = 2.5});
  EXPECT_TRUE(has(out.str(), "steps of this job   2048 tokens/s, MFU 16.4 %\n")) << out.str();
}

}  // namespace
}  // namespace kzero::metrics
