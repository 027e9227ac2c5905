// A time line of this process: spans of its threads' time, recorded in preallocated memory. While
// recording is off, a span costs one load and one branch.
#pragma once

#include <fmt/format.h>

#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace kzero {

enum class SpanKind : std::uint8_t { phase, kernel, product, copy, message, wait, file };

constexpr std::string_view name_of(SpanKind kind) {
  constexpr std::string_view names[] = {"phase",   "kernel", "product", "copy",
                                        "message", "wait",   "file"};
  return names[static_cast<int>(kind)];
}

/// The work of a span; 0 means that it is not recorded.
struct SpanWork {
  Index elements = 0;  // sent
  Index bytes = 0;     // sent or copied
  Index operations = 0;
  std::int32_t rank = -1;  // destination, as a rank of the launch; -1: none, or several
};

/// A name that is formatted without allocating memory. Longer text is truncated.
class SpanName {
 public:
  static constexpr std::size_t max_bytes = 78;  // characters and the final zero

  template <class... Arguments>
  explicit SpanName(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
    *fmt::format_to_n(text_, max_bytes - 1, format, std::forward<Arguments>(arguments)...).out =
        '\0';
  }
  const char* c_str() const { return text_; }
  operator std::string_view() const { return text_; }  // NOLINT(google-explicit-constructor)

 private:
  char text_[max_bytes];
};

/// A span of one thread, measured by this process's steady clock.
struct SpanRecord {
  std::int64_t begin = 0, end = 0;  // nanoseconds; end 0: still open when recording ended
  SpanWork work;
  std::uint8_t lane = 0;  // position in Timeline::lanes
  SpanKind kind = SpanKind::phase;
  char name[SpanName::max_bytes] = {};
};
static_assert(sizeof(SpanRecord) == 128);

/// A finished recording: spans in the order of their beginnings, and the names of their threads.
struct Timeline {
  std::span<const SpanRecord> spans;
  std::vector<std::string> lanes;
  std::int64_t begin = 0, end = 0;  // of recording
  Index lost = 0;                   // spans that did not fit
};

/// Starts recording into `memory`, which must outlive the use of the Timeline that stop_timeline()
/// returns. Call both functions while no other thread opens spans.
void start_timeline(std::span<SpanRecord> memory);
Timeline stop_timeline();

/// Nanoseconds of the clock that spans are measured with.
std::int64_t timeline_clock();

/// Names the calling thread in time lines. Threads with the same name share a lane and must not
/// live at the same time. The thread that starts a time line is called "compute" unless it has a
/// name.
void name_lane(const std::string& name);

namespace detail {
inline std::atomic<bool> timeline_is_recording = false;
}

inline bool timeline_is_recording() {
  return detail::timeline_is_recording.load(std::memory_order_relaxed);
}

/// begin_span opens a span on the calling thread; end_span closes the one opened last. Spans nest.
/// Closing without an open span does nothing. For callbacks; other code uses TimelineSpan.
void begin_span(SpanKind kind, std::string_view name, const SpanWork& work = {});
void end_span();

/// A span for as long as the object lives, named by name(). While recording is off, name() is not
/// called.
class TimelineSpan {
 public:
  template <class F>
  TimelineSpan(SpanKind kind, const F& name, const SpanWork& work = {})
      : is_open_(timeline_is_recording()) {
    if (is_open_) begin_span(kind, name(), work);
  }
  ~TimelineSpan() {
    if (is_open_) end_span();
  }
  TimelineSpan(const TimelineSpan&) = delete;
  TimelineSpan& operator=(const TimelineSpan&) = delete;

  bool is_open() const { return is_open_; }

 private:
  bool is_open_;
};

}  // namespace kzero
