// Events and devices that need only CUDA's runtime, or HIP's under CUDA's names; device_cuda.cpp
// and device_hip.cpp contain the parts that need Kokkos.
#include "base/error.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/event.hpp"

namespace kzero::runtime {

namespace {

/// Throws if a kernel could not be launched: release builds of Kokkos do not check.
void check_launches() { require(cudaPeekAtLastError(), "the launch of a kernel"); }

}  // namespace

struct Event::Handle {
  cudaEvent_t event = nullptr;
  bool recorded = false;

  Handle() { require(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate"); }
  ~Handle() { static_cast<void>(cudaEventDestroy(event)); }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
};

Event::Event() = default;
Event::~Event() = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(Event&&) noexcept = default;

void Event::record(const Execution& stream) {
  if (!handle_) handle_ = std::make_unique<Handle>();
  check_launches();
  require(cudaEventRecord(handle_->event, stream_of(stream)), "cudaEventRecord");
  handle_->recorded = true;
}

void Event::wait(const Execution& stream) const {
  if (!handle_ || !handle_->recorded) return;
  require(cudaStreamWaitEvent(stream_of(stream), handle_->event, 0), "cudaStreamWaitEvent");
}

bool Event::reached() const {
  if (!handle_ || !handle_->recorded) return true;
  check_launches();
  const cudaError_t status = cudaEventQuery(handle_->event);
  if (status == cudaErrorNotReady) {
    // The answer counts as an error, which a later check would find.
    static_cast<void>(cudaGetLastError());
    return false;
  }
  require(status, "cudaEventQuery");
  return true;
}

void Event::synchronize() const {
  if (handle_ && handle_->recorded)
    require(cudaEventSynchronize(handle_->event), "cudaEventSynchronize");
}

int device_count() {
  int count = 0;
  return cudaGetDeviceCount(&count) == cudaSuccess ? count : 0;
}

std::string device_kind() {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device_number()), "cudaGetDeviceProperties");
  return properties.name;
}

void use_device() { require(cudaSetDevice(device_number()), "cudaSetDevice"); }

std::string device_name() {
  char bus[32] = {};
  require(cudaDeviceGetPCIBusId(bus, sizeof bus, device_number()), "cudaDeviceGetPCIBusId");
  return std::string("device ") + bus;
}

}  // namespace kzero::runtime
