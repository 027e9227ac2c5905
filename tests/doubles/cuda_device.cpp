// A stand-in for CUDA's runtime: current devices, contexts, and errors, which belong to threads.
#include <mpi.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <thread>
#include <utility>

#include "doubles/cuda_runtime.hpp"
#include "doubles/cuda_state.hpp"

namespace kzero::doubles {

namespace {

const std::thread::id first_thread = std::this_thread::get_id();  // Kokkos chose its device
thread_local int thread_device = std::this_thread::get_id() == first_thread ? own_device : 0;
thread_local cudaError_t error = cudaSuccess;
std::vector<std::string> violations;
std::string bus_of_all;
std::atomic<bool> refuses_device = false;

int launch_rank() {
  int is_running = 0, rank = 0;
  MPI_Initialized(&is_running);
  if (is_running) MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

CudaState& cuda() {
  static CudaState state;
  return state;
}

void fail_launch() { failed(cudaErrorInvalidConfiguration); }
int current_device() { return thread_device; }
void refuse_device(bool refuse) { refuses_device = refuse; }
void set_bus(const std::string& bus) { bus_of_all = bus; }

void violate(const std::string& what) {
  const std::lock_guard lock(cuda().mutex);
  std::cerr << "against the rules of CUDA or NCCL: " << what << std::endl;
  violations.push_back(what);
}

std::vector<std::string> take_violations() {
  const std::lock_guard lock(cuda().mutex);
  return std::exchange(violations, {});
}

void touch_device(const char* function) {
  const std::lock_guard lock(cuda().mutex);
  if (thread_device != own_device)
    violate(std::string(function) + " takes memory on device " + std::to_string(thread_device) +
            ", as its thread has not chosen the process's");
}

cudaError_t failed(cudaError_t status) { return error = status; }

cudaError_t last_error(bool clear) { return clear ? std::exchange(error, cudaSuccess) : error; }

}  // namespace kzero::doubles

using namespace kzero::doubles;  // the names of CUDA's functions are global

const char* cudaGetErrorString(cudaError_t status) {
  switch (status) {
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
    case cudaErrorInvalidResourceHandle:
      return "invalid resource handle";
    case cudaErrorNotReady:
      return "device not ready";
    default:
      return "some error";
  }
}

cudaError_t cudaPeekAtLastError() { return last_error(false); }
cudaError_t cudaGetLastError() { return last_error(true); }

cudaError_t cudaGetDeviceCount(int* count) {
  *count = own_device + 1;
  return cudaSuccess;
}

// Since CUDA 12 it makes the context at once.
cudaError_t cudaSetDevice(int number) {
  if (number < 0 || number > own_device || refuses_device) return failed(cudaErrorInvalidDevice);
  thread_device = number;
  touch_device("cudaSetDevice");
  return cudaSuccess;
}

cudaError_t cudaGetDevice(int* number) {
  *number = thread_device;
  return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int number) {
  if (number < 0 || number > own_device) return failed(cudaErrorInvalidDevice);
  std::snprintf(properties->name, sizeof properties->name, "device of kind %d", number);
  return cudaSuccess;
}

cudaError_t cudaDeviceGetPCIBusId(char* bus, int length, int number) {
  if (number < 0 || number > own_device) return failed(cudaErrorInvalidDevice);
  if (bus_of_all.empty()) {
    std::snprintf(bus, static_cast<std::size_t>(length), "0000:%02x:%02x.0", launch_rank(), number);
  } else {
    std::snprintf(bus, static_cast<std::size_t>(length), "%s", bus_of_all.c_str());
  }
  return cudaSuccess;
}
