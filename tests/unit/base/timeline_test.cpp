#include "base/timeline.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <thread>

namespace kzero {
namespace {

constexpr auto unnamed = [] { return "span"; };

TEST(Timeline, records_nested_spans_with_their_work) {
  std::array<SpanRecord, 8> room{};
  start_timeline(room);
  {
    const TimelineSpan outer(SpanKind::phase, [] { return "outer"; });
    const TimelineSpan inner(SpanKind::message, [] { return SpanName("to {}", 3); },
                             {.elements = 5, .bytes = 20, .rank = 3});
    EXPECT_TRUE(inner.is_open());
  }
  const Timeline line = stop_timeline();
  ASSERT_EQ(line.spans.size(), 2U);
  const SpanRecord &outer = line.spans[0], &inner = line.spans[1];
  EXPECT_STREQ(outer.name, "outer");
  EXPECT_STREQ(inner.name, "to 3");
  EXPECT_EQ(inner.kind, SpanKind::message);
  EXPECT_EQ(inner.work.elements, 5);
  EXPECT_EQ(inner.work.bytes, 20);
  EXPECT_EQ(inner.work.rank, 3);
  EXPECT_LE(line.begin, outer.begin);
  EXPECT_LE(outer.begin, inner.begin);
  EXPECT_LE(inner.begin, inner.end);
  EXPECT_LE(inner.end, outer.end);
  EXPECT_LE(outer.end, line.end);
  EXPECT_EQ(line.lost, 0);
}

TEST(Timeline, records_nothing_unless_started) {
  std::array<SpanRecord, 2> room{};
  bool named = false;
  {
    const TimelineSpan before(SpanKind::phase, [&] {
      named = true;
      return "before";
    });
    start_timeline(room);  // within a span, whose end must not close another
    const TimelineSpan within(SpanKind::phase, unnamed);
    end_span();
    end_span();
  }
  const Timeline line = stop_timeline();
  EXPECT_FALSE(named);
  EXPECT_EQ(line.spans.size(), 1U);
}

TEST(Timeline, counts_what_does_not_fit_and_closes_the_right_spans) {
  std::array<SpanRecord, 2> room{};
  start_timeline(room);
  {
    const TimelineSpan first(SpanKind::phase, unnamed);
    { const TimelineSpan second(SpanKind::phase, unnamed); }
    { const TimelineSpan third(SpanKind::phase, unnamed); }
    EXPECT_EQ(room[0].end, 0);
  }
  const Timeline line = stop_timeline();
  EXPECT_EQ(line.spans.size(), 2U);
  EXPECT_EQ(line.lost, 1);
  EXPECT_GE(room[0].end, room[1].end);
}

TEST(Timeline, survives_spans_nested_deeper_than_it_keeps) {
  constexpr int depth = 100;
  std::array<SpanRecord, depth> room{};
  start_timeline(room);
  for (int i = 0; i < depth; ++i) begin_span(SpanKind::kernel, "deep");
  for (int i = 0; i < depth; ++i) end_span();
  const Timeline line = stop_timeline();
  for (const SpanRecord& span : line.spans) EXPECT_GT(span.end, 0);
  EXPECT_EQ(static_cast<int>(line.spans.size()), 64);
}

TEST(Timeline, cuts_long_names) {
  std::array<SpanRecord, 2> room{};
  const std::string name(200, 'x');
  start_timeline(room);
  {
    const TimelineSpan span(SpanKind::phase, [&] { return name; });
  }
  {
    const TimelineSpan span(SpanKind::phase, [&] { return SpanName("{}", name); });
  }
  for (const SpanRecord& span : stop_timeline().spans)
    EXPECT_EQ(std::string(span.name), std::string(SpanName::max_bytes - 1, 'x'));
}

TEST(Timeline, gives_each_thread_a_lane) {
  std::array<SpanRecord, 4> room{};
  start_timeline(room);
  const auto record = [] {
    name_lane("helper");
    const TimelineSpan span(SpanKind::phase, unnamed);
  };
  std::thread(record).join();
  { const TimelineSpan span(SpanKind::phase, unnamed); }
  std::thread(record).join();
  const Timeline line = stop_timeline();
  ASSERT_EQ(line.spans.size(), 3U);
  EXPECT_EQ(line.lanes[line.spans[0].lane], "helper");
  EXPECT_EQ(line.lanes[line.spans[1].lane], "compute");
  EXPECT_EQ(line.spans[2].lane, line.spans[0].lane);
}

}  // namespace
}  // namespace kzero
