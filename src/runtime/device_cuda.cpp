#include "base/error.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"

namespace kzero::runtime {

namespace {

void check(cudaError_t status, const char* what) {
  KZERO_REQUIRE(status == cudaSuccess, ExitCode::other, "{} failed: {}", what,
                cudaGetErrorString(status));
}

}  // namespace

struct Event::Handle {
  cudaEvent_t event = nullptr;
  bool marked = false;

  Handle() { check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Handle() { cudaEventDestroy(event); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::mark(const Execution& queue) {
  if (!handle_) handle_ = std::make_unique<Handle>();
  check(cudaEventRecord(handle_->event, stream_of(queue)), "cudaEventRecord");
  handle_->marked = true;
}

void Event::hold(const Execution& queue) const {
  if (!handle_ || !handle_->marked) return;
  check(cudaStreamWaitEvent(stream_of(queue), handle_->event, 0), "cudaStreamWaitEvent");
}

bool Event::reached() const {
  if (!handle_ || !handle_->marked) return true;
  const cudaError_t status = cudaEventQuery(handle_->event);
  if (status == cudaErrorNotReady) return false;
  check(status, "cudaEventQuery");
  return true;
}

void Event::wait() const {
  if (handle_ && handle_->marked)
    check(cudaEventSynchronize(handle_->event), "cudaEventSynchronize");
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

cudaStream_t stream_of(const Execution& queue) { return queue.cuda_stream(); }

std::string device_name() {
  char bus[32] = {};
  check(cudaDeviceGetPCIBusId(bus, sizeof bus, Execution().cuda_device()), "cudaDeviceGetPCIBusId");
  return std::string("device ") + bus;
}

}  // namespace kzero::runtime
