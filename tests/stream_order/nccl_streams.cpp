// Streams as tests/doubles/nccl*.cpp and src/comm/nccl_communicator.cpp see them. Which work comes
// after which is ThreadSanitizer's to say here, not the stand-in's for CUDA's runtime.
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdio>

#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"
#include "stream_order/streams.hpp"

namespace kzero {

namespace {

int world_rank() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

}  // namespace

namespace doubles {

/// Runs NCCL's work at once, as the stream.
void enqueue(cudaStream_t stream, std::function<void()> call) {
  stream_order::enqueue(stream, call);
}
Position end_of(cudaStream_t stream) { return {stream, 0}; }
void run_to(const Position& /*position*/) {}
bool is_after(const Position& /*position*/, cudaStream_t /*stream*/) { return true; }

bool is_stream(cudaStream_t stream) { return stream != nullptr; }
int device_of(cudaStream_t /*stream*/) { return own_device; }
int current_device() { return own_device; }
void set_open_groups(int /*count*/) {}
void violate(const std::string& what) { ADD_FAILURE() << what; }

}  // namespace doubles

cudaStream_t runtime::stream_of(const Execution& stream) {
  return reinterpret_cast<cudaStream_t>(stream.impl_internal_space_instance());
}

}  // namespace kzero

/// The address of a device of each rank's own.
extern "C" cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int /*device*/) {
  std::snprintf(text, static_cast<std::size_t>(length), "0000:%02x:00.0", kzero::world_rank());
  return cudaSuccess;
}
