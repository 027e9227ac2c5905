#include "zero/schedule.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

namespace kzero::zero {
namespace {

using param::Operation;
using param::Pass;
using param::Value;
using param::ValueKind;

Value parameters(Index unit) { return {ValueKind::parameters, unit, {}, 0}; }
Value gradient(Index unit) { return {ValueKind::gradient, unit, {}, 1}; }

/// Unit 0, `blocks` more units, and a last unit that also uses unit 0. Backward, unit 0 needs no
/// parameters. The trace is written here so that the schedule is tested without a model.
param::Trace trace_of(Index blocks) {
  param::Trace trace;
  for (Index u = 0; u <= blocks; ++u) trace.push_back({Pass::forward, u, {parameters(u)}, {}});
  trace.push_back({Pass::loss,
                   blocks + 1,
                   {parameters(0), parameters(blocks + 1)},
                   {gradient(0), gradient(blocks + 1)}});
  for (Index u = blocks; u >= 1; --u)
    trace.push_back({Pass::backward, u, {parameters(u)}, {gradient(u)}});
  trace.push_back({Pass::backward, 0, {}, {gradient(0)}});
  return trace;
}

param::FlatLayout layout_of(Index blocks, Index ranks) {
  param::Table table{{"first", {{"a", {50, 10}}}}};
  for (Index b = 0; b < blocks; ++b) table.push_back({"block", {{"b", {100 + b}}}});
  table.push_back({"last", {{"c", {7}}}});
  return {table, ranks};
}

class Stages : public testing::TestWithParam<std::tuple<Index, Index, bool>> {
 protected:
  const Index blocks = std::get<0>(GetParam()), ahead = std::get<1>(GetParam());
  const bool overlap = std::get<2>(GetParam());
  const param::FlatLayout layout = layout_of(blocks, 3);
  const Schedule schedule{trace_of(blocks), layout, {stage(3, 3), ahead, overlap}};

  /// `place` is within `elements` and does not overlap any unit whose offset is in `taken`.
  void expect_alone(const BufferOffset& place, const std::map<Index, Index>& taken,
                    Index elements) const {
    const Index end = place.offset + layout.unit(place.unit).padded;
    for (const auto& [unit, offset] : taken) {
      EXPECT_TRUE(end <= offset || offset + layout.unit(unit).padded <= place.offset)
          << "units " << unit << " and " << place.unit;
    }
    EXPECT_LE(end, elements);
  }
};

// Simulates the schedule. Every operation finds the units that it reads without overlap, and only a
// limited number of units exist at a time.
TEST_P(Stages, EveryReadFindsItsUnitGathered) {
  std::map<Index, Index> there;  // unit to offset
  for (std::size_t i = 0; i < schedule.trace().size(); ++i) {
    const ScheduleStep& step = schedule.steps()[i];
    for (const BufferOffset& place : step.gathers) {
      expect_alone(place, there, schedule.gathered_elements());
      EXPECT_TRUE(there.emplace(place.unit, place.offset).second) << "gathered twice";
    }
    const auto reads = units_of(schedule.trace()[i].reads, ValueKind::parameters);
    EXPECT_EQ(step.needs, reads);
    for (const Index unit : reads) EXPECT_TRUE(there.contains(unit)) << unit << " at " << i;
    // A tied last operation reads two units.
    EXPECT_LE(static_cast<Index>(there.size()), ahead + 2) << "at " << i;
    for (const Index unit : step.releases) EXPECT_EQ(there.erase(unit), 1U);
  }
  EXPECT_TRUE(there.empty());
}

TEST_P(Stages, GradientsHaveAPlaceUntilTheyAreReduced) {
  std::map<Index, Index> places;
  std::vector<Index> reducing;
  std::set<Index> complete;
  for (std::size_t i = 0; i < schedule.trace().size(); ++i) {
    const ScheduleStep& step = schedule.steps()[i];
    for (const BufferOffset& place : step.targets) {
      expect_alone(place, places, schedule.target_elements());
      EXPECT_TRUE(places.emplace(place.unit, place.offset).second);
    }
    for (const Index unit : units_of(schedule.trace()[i].writes, ValueKind::gradient))
      EXPECT_TRUE(places.contains(unit) && !complete.contains(unit)) << unit << " at " << i;
    for (const Index unit : reducing) places.erase(unit);
    reducing.clear();
    for (const Index unit : step.complete) {
      EXPECT_TRUE(complete.insert(unit).second);
      if (overlap) reducing.push_back(unit);
      if (!overlap) places.erase(unit);
    }
  }
  EXPECT_EQ(static_cast<Index>(complete.size()), blocks + 2);
}

// Paper section 7.2.2: at most one gather of all units forward and one backward. The first unit is
// not needed backward. A unit still in memory is not gathered again.
TEST_P(Stages, GathersNoMoreThanTwice) {
  std::map<Index, Index> times;
  for (const ScheduleStep& step : schedule.steps()) {
    for (const BufferOffset& place : step.gathers) ++times[place.unit];
  }
  Index elements = 0;
  for (const auto& [unit, count] : times) {
    EXPECT_LE(count, 2) << unit;
    elements += count * layout.unit(unit).padded;
  }
  EXPECT_EQ(times[blocks + 1], 1) << "the last unit";
  if (ahead > 0) {
    EXPECT_EQ(times[blocks], 1) << "forward and backward of it are close";
  }
  EXPECT_EQ(schedule.gathers(), elements);
}

INSTANTIATE_TEST_SUITE_P(Depths, Stages,
                         testing::Combine(testing::Values(1, 2, 3, 12),
                                          testing::Values(0, 1, 2, 40), testing::Bool()));

TEST(Schedule, OfReplicatedStagesGathersNothing) {
  const param::FlatLayout layout = layout_of(3, 4);
  for (const Index number : {0, 1, 2}) {
    const Schedule schedule(trace_of(3), layout, {stage(number, 4), 1, true});
    EXPECT_EQ(schedule.gathered_elements(), 0);
    EXPECT_EQ(schedule.gathers(), 0);
    EXPECT_EQ(schedule.target_elements() > 0, number == 2) << "gradients in passing: stage 2";
    Index complete = 0;
    for (const ScheduleStep& step : schedule.steps()) {
      EXPECT_TRUE(step.gathers.empty() && step.releases.empty());
      complete += static_cast<Index>(step.complete.size());
    }
    EXPECT_EQ(complete, 5) << "every unit's gradient is reduced once";
  }
}

// Gradients are partitioned as in stage 3, but no unit has to arrive.
TEST(Schedule, OfSharedParametersGathersNothing) {
  const param::FlatLayout layout = layout_of(3, 4);
  const Schedule schedule(trace_of(3), layout, {stage(3, 4, 1, true), 1, true});
  EXPECT_EQ(schedule.gathered_elements(), 0);
  EXPECT_EQ(schedule.gathers(), 0);
  EXPECT_GT(schedule.target_elements(), 0);
  for (const ScheduleStep& step : schedule.steps())
    EXPECT_TRUE(step.gathers.empty() && step.releases.empty());
}

}  // namespace
}  // namespace kzero::zero
