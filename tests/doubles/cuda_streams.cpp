// A stand-in for CUDA's runtime: streams and events. Calls on a stream run in order, as late as the
// test wants, on the thread that waits for them.
#include <algorithm>
#include <stdexcept>

#include "doubles/cuda_runtime.hpp"
#include "doubles/cuda_state.hpp"

namespace kzero::doubles {

namespace {

auto when = Calls::at_once;
int open_groups = 0;
double clock_now = 0;  // milliseconds

bool lives(cudaStream_t stream) {
  return std::ranges::find(cuda().streams, stream) != cuda().streams.end() && stream->lives;
}

bool lives(cudaEvent_t event) {
  return std::ranges::find(cuda().events, event) != cuda().events.end() && event->lives;
}

template <class Handle>
cudaError_t require(Handle handle, const char* function) {
  if (lives(handle)) return cudaSuccess;
  violate(std::string(function) + " of a handle that was destroyed or never made");
  return failed(cudaErrorInvalidResourceHandle);
}

void refuse_open_group(const char* function) {
  if (open_groups > 0) violate(std::string(function) + " before the end of a group of NCCL");
}

/// Enqueued calls are counted under the lock, and run without it.
void push(cudaStream_t stream, std::function<void()> call) {
  const std::lock_guard lock(cuda().mutex);
  merge(stream->after, cuda().host);
  stream->calls.push_back(std::move(call));
  ++stream->enqueued;
}

/// Enqueues a call that reads the clock when the stream comes to it. The caller holds the lock.
void note_time(cudaEvent_t event, cudaStream_t stream) {
  ++event->recorded;
  stream->calls.push_back([event] {
    const std::lock_guard lock(cuda().mutex);
    ++event->noted;
    event->milliseconds = clock_now;
  });
  ++stream->enqueued;
}

cudaStream_t make_stream(int device, bool is_kept) {
  const std::lock_guard lock(cuda().mutex);
  auto* stream = new CUstream_st;
  stream->device = device;
  stream->is_kept = is_kept;
  return cuda().streams.emplace_back(stream);
}

}  // namespace

void set_calls(Calls value) { when = value; }
void set_open_groups(int count) { open_groups = count; }

void pass_time(double milliseconds) {
  const std::lock_guard lock(cuda().mutex);
  clock_now += milliseconds;
}

void merge(Clock& into, const Clock& from) {
  for (const auto& [stream, calls] : from) into[stream] = std::max(into[stream], calls);
}

bool is_stream(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  return lives(stream);
}

int device_of(cudaStream_t stream) { return stream->device; }

Position end_of(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  return {stream, stream->enqueued};
}

void run_to(const Position& position) {
  const std::lock_guard one_device(cuda().running);
  CUstream_st& stream = *position.stream;
  std::unique_lock lock(cuda().mutex);
  while (stream.done < position.calls && !stream.calls.empty()) {
    const auto call = std::move(stream.calls.front());
    stream.calls.pop_front();
    lock.unlock();
    call();
    lock.lock();
    ++stream.done;
  }
}

bool is_after(const Position& position, cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  const auto reaches = [&](const Clock& clock) {
    const auto found = clock.find(position.stream);
    return found != clock.end() && found->second >= position.calls;
  };
  return position.stream == stream || reaches(stream->after) || reaches(cuda().host);
}

void enqueue(cudaStream_t stream, std::function<void()> call) {
  if (!is_stream(stream)) throw std::invalid_argument("no stream to enqueue on");
  push(stream, std::move(call));
  if (when == Calls::at_once) run_to(end_of(stream));
}

cudaStream_t default_stream() {
  static const cudaStream_t stream = make_stream(own_device, true);
  return stream;
}

cudaStream_t stream_for(const void* owner) {
  static std::map<const void*, cudaStream_t> streams;
  const std::lock_guard lock(cuda().mutex);
  const auto [stream, is_new] = streams.emplace(owner, nullptr);
  if (is_new) stream->second = make_stream(own_device, true);
  return stream->second;
}

}  // namespace kzero::doubles

using namespace kzero::doubles;  // the names of CUDA's functions are global

cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  touch_device("cudaStreamCreate");
  *stream = make_stream(current_device(), false);
  return cudaSuccess;
}

// Enqueued work still runs.
cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  const std::lock_guard lock(cuda().mutex);
  if (const auto status = require(stream, "cudaStreamDestroy")) return status;
  stream->lives = false;
  return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  touch_device("cudaStreamSynchronize");
  refuse_open_group("cudaStreamSynchronize");
  if (const auto status = require(stream, "cudaStreamSynchronize")) return status;
  const Position end = end_of(stream);
  run_to(end);
  const std::lock_guard lock(cuda().mutex);
  merge(cuda().host, stream->after);
  merge(cuda().host, {{stream, end.calls}});
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  touch_device("cudaEventCreate");
  const std::lock_guard lock(cuda().mutex);
  *event = cuda().events.emplace_back(new CUevent_st);
  (*event)->device = current_device();
  (*event)->is_timed = (flags & cudaEventDisableTiming) == 0;
  return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return cudaEventCreateWithFlags(event, cudaEventDefault);
}

cudaError_t cudaEventDestroy(cudaEvent_t event) {
  const std::lock_guard lock(cuda().mutex);
  if (const auto status = require(event, "cudaEventDestroy")) return status;
  event->lives = false;
  return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  touch_device("cudaEventRecord");
  refuse_open_group("cudaEventRecord");
  std::unique_lock lock(cuda().mutex);
  if (const auto status = require(event, "cudaEventRecord")) return status;
  if (const auto status = require(stream, "cudaEventRecord")) return status;
  if (event->device != stream->device) {
    violate("cudaEventRecord of an event of one device on a stream of another");
    return failed(cudaErrorInvalidResourceHandle);
  }
  merge(stream->after, cuda().host);
  if (event->is_timed) note_time(event, stream);
  event->stream = stream;
  event->calls = stream->enqueued;
  event->after = stream->after;
  merge(event->after, {{stream, stream->enqueued}});
  lock.unlock();
  if (event->is_timed && when == Calls::at_once) run_to({stream, event->calls});
  return cudaSuccess;
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  touch_device("cudaStreamWaitEvent");
  if (const auto status = require(event, "cudaStreamWaitEvent")) return status;
  if (const auto status = require(stream, "cudaStreamWaitEvent")) return status;
  if (!event->stream) return cudaSuccess;
  const Position point{event->stream, event->calls};
  if (when == Calls::queued) {
    push(stream, [point] { run_to(point); });
  } else {
    run_to(point);
  }
  const std::lock_guard lock(cuda().mutex);
  merge(stream->after, event->after);
  return cudaSuccess;
}

cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  touch_device("cudaEventElapsedTime");
  const std::lock_guard lock(cuda().mutex);
  if (const auto status = require(begin, "cudaEventElapsedTime")) return status;
  if (const auto status = require(end, "cudaEventElapsedTime")) return status;
  const auto is_usable = [](cudaEvent_t event) { return event->is_timed && event->recorded > 0; };
  if (!is_usable(begin) || !is_usable(end)) {
    violate("cudaEventElapsedTime of an event that has no time");
    return failed(cudaErrorInvalidResourceHandle);
  }
  if (begin->noted < begin->recorded || end->noted < end->recorded)
    return failed(cudaErrorNotReady);
  *milliseconds = static_cast<float>(end->milliseconds - begin->milliseconds);
  return cudaSuccess;
}

// The answer "not ready" becomes the thread's last error, as PyTorch's CUDAEvent::query assumes.
cudaError_t cudaEventQuery(cudaEvent_t event) {
  touch_device("cudaEventQuery");
  const std::lock_guard lock(cuda().mutex);
  if (const auto status = require(event, "cudaEventQuery")) return status;
  const bool is_reached = !event->stream || event->stream->done >= event->calls;
  return is_reached ? cudaSuccess : failed(cudaErrorNotReady);
}

cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  touch_device("cudaEventSynchronize");
  refuse_open_group("cudaEventSynchronize");
  if (const auto status = require(event, "cudaEventSynchronize")) return status;
  if (!event->stream) return cudaSuccess;
  run_to({event->stream, event->calls});
  const std::lock_guard lock(cuda().mutex);
  merge(cuda().host, event->after);
  return cudaSuccess;
}
