// Streams as tests/doubles/nccl.cpp and src/comm/nccl_communicator.cpp see them.
#include <mpi.h>

#include "doubles/device.hpp"
#include "runtime/cuda_stream.hpp"
#include "stream_order/streams.hpp"

namespace kzero {

/// What NCCL enqueues runs at once, as the stream.
void doubles::enqueue(void* stream, std::function<void()> call) {
  stream_order::enqueue(stream, call);
}

cudaStream_t runtime::stream_of(const Execution& stream) {
  return reinterpret_cast<cudaStream_t>(stream.impl_internal_space_instance());
}

std::string runtime::device_name() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return "device " + std::to_string(rank);
}

}  // namespace kzero
