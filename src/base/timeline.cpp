#include "base/timeline.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <mutex>

namespace kzero {

namespace {

constexpr std::size_t max_nested = 64;  // nested spans of a thread; deeper ones are lost
constexpr Index none = -1;

// One time line per process, because the callbacks of libraries carry no state of the caller.
struct Recorder {
  std::span<SpanRecord> room;
  std::atomic<Index> begun = 0;
  std::atomic<Index> number = 0;  // of this time line, from 1
  std::int64_t started = 0;
  std::mutex mutex;  // of the lanes
  std::vector<std::string> lanes;
};
Recorder recorder;

struct Thread {
  int lane = -1;
  Index number = 0;  // of the time line to which the open spans belong
  std::size_t depth = 0;
  std::array<Index, max_nested> open{};
};
thread_local Thread thread;

int add_lane(std::string name) {
  const std::lock_guard lock(recorder.mutex);
  const auto max_lanes = std::size_t{std::numeric_limits<std::uint8_t>::max()};
  if (recorder.lanes.size() == max_lanes)
    return static_cast<int>(max_lanes) - 1;  // further threads share one lane
  if (const auto same = std::ranges::find(recorder.lanes, name); same != recorder.lanes.end())
    return static_cast<int>(same - recorder.lanes.begin());
  if (name.empty()) name = fmt::format("thread {}", recorder.lanes.size());
  recorder.lanes.push_back(std::move(name));
  return static_cast<int>(recorder.lanes.size()) - 1;
}

/// Returns the position of the next span, or `none` if the memory is full.
Index take_position() {
  const Index position = recorder.begun.fetch_add(1, std::memory_order_relaxed);
  return position < std::ssize(recorder.room) ? position : none;
}

}  // namespace

std::int64_t timeline_clock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void name_lane(const std::string& name) {
  if (thread.lane >= 0) return;
  thread.lane = add_lane(name);
}

void start_timeline(std::span<SpanRecord> given) {
  name_lane("compute");
  recorder.room = given;
  recorder.begun = 0;
  ++recorder.number;
  recorder.started = timeline_clock();
  detail::timeline_is_recording = true;
}

Timeline stop_timeline() {
  detail::timeline_is_recording = false;
  Timeline result;
  const Index kept = std::min<Index>(recorder.begun, std::ssize(recorder.room));
  result.spans = recorder.room.first(static_cast<std::size_t>(kept));
  result.lost = recorder.begun - kept;
  result.begin = recorder.started;
  result.end = timeline_clock();
  const std::lock_guard lock(recorder.mutex);
  result.lanes = recorder.lanes;
  return result;
}

void begin_span(SpanKind kind, std::string_view name, const SpanWork& work) {
  if (!timeline_is_recording()) return;
  if (thread.number != recorder.number) {
    thread.number = recorder.number;
    thread.depth = 0;
  }
  if (thread.lane < 0) thread.lane = add_lane("");
  const Index position = thread.depth < max_nested ? take_position() : none;
  if (thread.depth < max_nested) thread.open[thread.depth] = position;
  ++thread.depth;
  if (position == none) return;
  SpanRecord& span = recorder.room[position];
  span.work = work;
  span.lane = static_cast<std::uint8_t>(thread.lane);
  span.kind = kind;
  const std::size_t length = name.copy(span.name, SpanName::max_bytes - 1);
  span.name[length] = '\0';
  span.begin = timeline_clock();
}

void end_span() {
  if (!timeline_is_recording() || thread.number != recorder.number || thread.depth == 0) return;
  const std::int64_t now = timeline_clock();
  --thread.depth;
  if (thread.depth >= max_nested) return;
  const Index position = thread.open[thread.depth];
  if (position != none) recorder.room[position].end = now;
}

}  // namespace kzero
