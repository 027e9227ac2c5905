#include <deque>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/stream_timer.hpp"

namespace kzero::runtime {

namespace {

// A step has several waits for each unit. The list must not grow if nobody calls take_seconds().
constexpr std::size_t max_spans = 8192;

/// A point whose time is recorded, unlike that of runtime::Event.
class TimedPoint {
 public:
  TimedPoint() { require(cudaEventCreate(&event_), "cudaEventCreate"); }
  ~TimedPoint() {
    if (event_ != nullptr) static_cast<void>(cudaEventDestroy(event_));
  }
  TimedPoint(TimedPoint&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  TimedPoint& operator=(TimedPoint&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }

  void record(const Execution& stream) {
    require(cudaEventRecord(event_, stream_of(stream)), "cudaEventRecord");
  }

  bool reached() const {
    const cudaError_t status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) {
      // The answer counts as an error, which a later check would find.
      static_cast<void>(cudaGetLastError());
      return false;
    }
    require(status, "cudaEventQuery");
    return true;
  }

  double seconds_since(const TimedPoint& earlier) const {
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, earlier.event_, event_), "cudaEventElapsedTime");
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

struct Span {
  TimedPoint begin, end;
};

}  // namespace

struct StreamTimer::Spans {
  std::deque<Span> passing;
  std::vector<Span> spare;
  bool is_open = false;  // begin() was called for the last one

  Span& add() {
    if (spare.empty()) return passing.emplace_back();
    passing.push_back(std::move(spare.back()));
    spare.pop_back();
    return passing.back();
  }
};

StreamTimer::StreamTimer() : spans_(std::make_unique<Spans>()) {}
StreamTimer::~StreamTimer() = default;

void StreamTimer::begin(const Execution& stream) {
  spans_->is_open = spans_->passing.size() < max_spans;
  if (spans_->is_open) spans_->add().begin.record(stream);
}

void StreamTimer::end(const Execution& stream) {
  if (std::exchange(spans_->is_open, false)) spans_->passing.back().end.record(stream);
}

double StreamTimer::take_seconds() {
  double sum = 0;
  std::deque<Span>& passing = spans_->passing;
  while (!passing.empty() && passing.front().end.reached()) {
    sum += passing.front().end.seconds_since(passing.front().begin);
    spans_->spare.push_back(std::move(passing.front()));
    passing.pop_front();
  }
  return sum;
}

}  // namespace kzero::runtime
