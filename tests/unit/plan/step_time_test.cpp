// Replays of steps, compared with times computed by hand. Every byte takes a second.
#include "plan/step_time.hpp"

#include <gtest/gtest.h>

#include <array>

#include "plan/host_copies.hpp"

namespace kzero::plan {
namespace {

constexpr Network network{.within_node = 1,
                          .rank_between = 1,
                          .node_between = 1e9,
                          .within_latency = 0,
                          .between_latency = 0};

Collective seconds(double n) { return {.within = n}; }

/// Two operations, forward and backward of one unit, of 10 seconds each, and an update of 4.
StepOutline two_operations() {
  StepOutline o;
  o.data = {2, 2, 1};
  o.tensor = {2, 1, 1};
  o.node_ranks = o.sharing = 2;
  o.operations = {{.work = 0.5, .needs = {0}}, {.work = 0.5, .needs = {0}, .complete = {0}}};
  o.gathers = {seconds(3)};
  o.last_sums = {{.slices = 1, .exchange = seconds(6)}};
  o.updates = {1};
  return o;
}

constexpr Estimate work{.rates = {}, .model = 20, .optimizer = 4};

/// Every second of a step is work or waiting.
double step_of(const StepOutline& o, const Estimate& parts = work) {
  const StepTime found = step_time(o, network, parts);
  double model = 0;
  for (const OutlinedOperation& operation : o.operations) model += operation.work * parts.model;
  EXPECT_NEAR(found.seconds, model + parts.optimizer + found.waits.sum(), 1e-9);
  return found.seconds;
}

TEST(StepTime, OfMessagesThatBlockIsTheSum) {
  StepOutline o = two_operations();
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 6 + 4);
  o.update_gathers = o.gathers;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 6 + 4 + 3);
  EXPECT_DOUBLE_EQ(message_seconds(o, network), 6 + 3);
}

// Three operations: the second one's reduction overlaps the third.
TEST(StepTime, AReductionOverlapsTheNextOperation) {
  StepOutline o = two_operations();
  o.operations.push_back({.work = 0.25, .complete = {}});
  o.in_flight = o.reductions_overlap = true;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 5 + 1 + 4) << "6 seconds, 5 of them during the third";
  o.in_flight = o.reductions_overlap = false;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 6 + 5 + 4);
}

// Only the slices that fit in the slots are in flight during the next operation. A device adds up
// all of them meanwhile.
TEST(StepTime, OnHostsOnlyTheFirstSlicesOverlap) {
  StepOutline o = two_operations();
  o.operations.push_back({.work = 0.25, .complete = {}});
  o.in_flight = o.reductions_overlap = true;
  o.slots = 2;
  o.last_sums = {{.slices = 5, .exchange = seconds(1)}};
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 5 + 3 + 4);
  o.device_sums = true;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 5 + 4);
}

TEST(StepTime, OnHostsTheCollectionWithinTheNodeBlocks) {
  StepOutline o = two_operations();
  o.operations.push_back({.work = 0.25, .complete = {}});
  o.in_flight = o.reductions_overlap = true;
  o.last_sums = {{.slices = 1, .collect = seconds(2), .exchange = seconds(4)}};
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 2 + 5 + 4);
  o.device_sums = true;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 6 + 4) << "6 seconds outlast the third operation's 5";
}

// Stage 3 gathers units ahead of the operations that need them.
TEST(StepTime, GathersOverlapTheOperationsBeforeTheirUse) {
  StepOutline o = two_operations();
  o.updates = {0.5, 0.5};
  o.gathers = {seconds(3), seconds(7)};
  o.last_sums = {{}, {}};
  o.operations = {{.work = 0.5, .gathers = {0, 1}, .needs = {0}}, {.work = 0.5, .needs = {1}}};
  EXPECT_DOUBLE_EQ(step_of(o), 3 + 7 + 20 + 4);
  o.in_flight = true;
  EXPECT_DOUBLE_EQ(step_of(o), 3 + 20 + 4) << "7 seconds are less than an operation's 10";
}

// Over MPI a step ends when the updated parameters have arrived. Over NCCL the next step's
// operations wait for the units that they need.
TEST(StepTime, UpdatedParametersArriveInTheNextStepOverNccl) {
  StepOutline o = two_operations();
  o.updates = {0.5, 0.5};
  o.gathers = {seconds(3), seconds(8)};
  o.last_sums = {{}, {}};
  o.operations = {{.work = 0.5, .needs = {0}}, {.work = 0.5, .needs = {1}}};
  o.update_gathers = o.gathers;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 4 + 11);
  o.in_flight = true;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 2 + 11) << "the first gather begins before the second update";
  o.device_sums = true;
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 4 + 1) << "the first gather ends a second after the updates";
}

// Over NCCL a gather and a sum are in flight at the same time if they use different links.
TEST(StepTime, MessagesWithinAndBetweenNodesOverlap) {
  StepOutline o = two_operations();
  o.in_flight = o.reductions_overlap = o.device_sums = true;
  o.updates = {0.5, 0.5};
  o.operations = {
      {.work = 0.5, .complete = {0}}, {.work = 0.25, .gathers = {1}}, {.work = 0.25, .needs = {1}}};
  o.gathers = {{}, {.between = 6}};
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 1 + 4) << "both last a second longer than the operation";
  o.gathers = {{}, {.within = 6}};
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 7 + 4) << "the gather begins after the sum";
}

// Three parts of 2 seconds. A part is copied while another is updated, and copies take turns.
TEST(StepTime, UpdatesOnTheHostOverlapWithCopies) {
  StepOutline o = two_operations();
  o.last_sums = {{}};
  o.host_update = {.bytes = 12, .part_bytes = 5};
  Estimate parts{.rates = {.host = {.copied_bytes = 4}}, .model = 20, .optimizer = 6};
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 1 + 6 + 1) << "the first part in, the last one back";
  parts.rates.host.copied_bytes = 1;
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 6 * 4) << "the copies alone";
  EXPECT_DOUBLE_EQ(copy_seconds(o, parts.rates.host), 6 * 4);
  EXPECT_DOUBLE_EQ(step_time(o, network, parts).waits[Cause::copies], 6 * 4 - 6);
  parts.rates.host = {};
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 6) << "unknown rates";
  EXPECT_EQ(copy_seconds(o, parts.rates.host), 0);
}

TEST(StepTime, UpdatedParametersAreGatheredAfterTheirCopyFromTheHost) {
  StepOutline o = two_operations();
  o.last_sums = {{}};
  o.host_update = {.bytes = 12, .part_bytes = 12};
  o.update_gathers = o.gathers;
  const Estimate parts{.rates = {.host = {.copied_bytes = 4}}, .model = 20, .optimizer = 6};
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 3 + 6 + 3 + 3);
}

// Two blocks. The input of the first is copied to the host while it computes. The second has to
// wait for the copy, because its output replaces that input.
TEST(StepTime, KeptInputsAreCopiedWhileBlocksCompute) {
  using enum param::Pass;
  const auto block = [](param::Pass pass, Index unit) {
    return OutlinedOperation{.work = 0.25,
                             .kept_bytes = 12,
                             .has_kept_before = pass == backward && unit > 1,
                             .pass = pass,
                             .unit = unit};
  };
  StepOutline o = two_operations();
  o.last_sums = {{}};
  o.operations = {block(forward, 1), block(forward, 2), block(backward, 2), block(backward, 1)};
  Estimate parts{.rates = {.host = {.copied_bytes = 1}}, .model = 20, .optimizer = 4};
  EXPECT_DOUBLE_EQ(step_of(o, parts), 4 * 12 + 5 + 4) << "the copies, the last block, the update";
  EXPECT_DOUBLE_EQ(copy_seconds(o, parts.rates.host), 4 * 12);
  parts.rates.host.copied_bytes = 4;
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 3 + 4) << "the last input comes back at once";
}

TEST(StepTime, RepeatsRounds) {
  StepOutline o = two_operations();
  o.sums = o.last_sums;
  for (const Index rounds : {1, 2, 3, 4, 5, 100}) {
    o.rounds = rounds;
    const auto n = static_cast<double>(rounds);
    EXPECT_NEAR(step_of(o), 20 + 6 * n + 4, 1e-9) << rounds;
    EXPECT_DOUBLE_EQ(message_seconds(o, network), 6 * n);
  }
  o.sums.clear();
  EXPECT_NEAR(step_of(o), 20 + 6 + 4, 1e-9) << "the last round alone reduces";
}

TEST(StepTime, TensorGroupsDelayTheirOperations) {
  StepOutline o = two_operations();
  o.data = {4, 2, 2};
  o.tensor = {4, 2, 1};
  o.node_ranks = o.sharing = 4;
  o.in_flight = o.reductions_overlap = true;
  o.tensor_per_micro_batch = {.exchanged = 5, .gathered = 2};
  EXPECT_DOUBLE_EQ(step_of(o), 20 + 7 + 6 + 4);
}

TEST(StepTime, MatricesAreGatheredARoundAhead) {
  StepOutline o = two_operations();
  o.last_sums = {{}};
  o.matrices = {.rounds = 3, .gather = seconds(2), .back = seconds(1)};
  const Estimate parts{.rates = {}, .model = 20, .optimizer = 16, .matrices = 12};
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 16 + 3 * (2 + 1));
  o.in_flight = o.reductions_overlap = true;
  EXPECT_DOUBLE_EQ(step_of(o, parts), 20 + 16 + 2 + 1 + 1)
      << "the first gather, the last return, and the first one, whose buffer the third gather "
         "needs";
}

TEST(StepTime, NamesWhatARankWaitsFor) {
  StepOutline o = two_operations();
  o.data = {4, 2, 2};
  o.tensor = {4, 2, 1};
  o.node_ranks = o.sharing = 4;
  o.update_gathers = o.gathers;
  o.sums = o.last_sums;
  o.rounds = 100;
  o.operations[0].gathers = {0};
  o.tensor_per_micro_batch = {.exchanged = 5};
  const Waits waits = step_time(o, network, work).waits;
  EXPECT_NEAR(waits[Cause::gathers], 300, 1e-9);
  EXPECT_NEAR(waits[Cause::sums], 600, 1e-9);
  EXPECT_NEAR(waits[Cause::activations], 500, 1e-9);
  EXPECT_NEAR(waits[Cause::updates], 3, 1e-9);
  EXPECT_EQ(waits[Cause::matrices], 0);
}

TEST(StepTime, TimeLinesHaveEverySecondOfTheRankAndItsLinks) {
  StepOutline o = two_operations();
  o.update_gathers = o.gathers;
  o.operations.push_back({.work = 0.25, .complete = {}});
  o.in_flight = o.reductions_overlap = true;
  o.last_sums = {{.slices = 1, .exchange = {.within = 6, .between = 2}}};
  o.host_update = {.bytes = 12, .part_bytes = 5};
  Estimate parts = work;
  parts.rates.host.copied_bytes = 4;
  std::vector<SpanRecord> spans;
  const double seconds = step_time(o, network, parts, &spans).seconds;
  std::array<double, 4> covered{};
  std::array<std::int64_t, 4> end{spans.front().begin};
  for (const SpanRecord& span : spans) {
    EXPECT_GE(span.begin, end[span.lane]) << span.name << " overlaps the span before it";
    end[span.lane] = span.end;
    covered[span.lane] += 1e-9 * static_cast<double>(span.end - span.begin);
  }
  EXPECT_NEAR(covered[0], seconds, 1e-6);
  EXPECT_NEAR(covered[1], 3 + 6, 1e-6);
  EXPECT_NEAR(covered[2], 2, 1e-6);
  EXPECT_NEAR(covered[1] + covered[2], message_seconds(o, network), 1e-6);
  EXPECT_NEAR(covered[3], copy_seconds(o, parts.rates.host), 1e-6);
  EXPECT_STREQ(spans.front().name, "forward of unit 0");
}

}  // namespace
}  // namespace kzero::plan
