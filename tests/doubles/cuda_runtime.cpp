// A stand-in for CUDA's runtime, as far as src/runtime/event_cuda.cpp calls it: events that are
// reached when a test says so, and a current device in each thread.
#include "doubles/cuda_runtime.hpp"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "runtime/cuda_stream.hpp"

namespace {

constexpr int own_device = 3;
bool launch_failed = false, events_reached = true;
thread_local int device = 0;

}  // namespace

namespace kzero::doubles {

std::vector<std::string>& cuda_calls() {
  static std::vector<std::string> calls;
  return calls;
}
void fail_launches(bool failed) { launch_failed = failed; }
void set_reached(bool reached) { events_reached = reached; }
int current_device() { return device; }

}  // namespace kzero::doubles

using kzero::doubles::cuda_calls;

const char* cudaGetErrorString(cudaError_t error) {
  return error == cudaErrorInvalidConfiguration ? "invalid configuration argument" : "some error";
}
cudaError_t cudaPeekAtLastError() {
  return launch_failed ? cudaErrorInvalidConfiguration : cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  *event = reinterpret_cast<cudaEvent_t>(new int(0));
  return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t event) {
  delete reinterpret_cast<int*>(event);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) {
  cuda_calls().emplace_back("record");
  return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) {
  cuda_calls().emplace_back("wait");
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t) {
  cuda_calls().emplace_back("query");
  return events_reached ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaEventSynchronize(cudaEvent_t) {
  cuda_calls().emplace_back("synchronize");
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int number) {
  device = number;
  cuda_calls().push_back("device " + std::to_string(number));
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = own_device + 1;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  std::snprintf(properties->name, sizeof properties->name, "device of kind %d", number);
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* bus, int length, int number) {
  std::snprintf(bus, static_cast<std::size_t>(length), "0000:%d8:00.0", number);
  return cudaSuccess;
}

namespace kzero::runtime {

cudaStream_t stream_of(const Execution&) { return nullptr; }
int device_number() { return own_device; }

}  // namespace kzero::runtime
