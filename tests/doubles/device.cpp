// In place of src/runtime/device_cuda.cpp where the host's Kokkos plays the device: each of its
// instances has a stream of the stand-in for CUDA's runtime. Kernels run at once, as on any host;
// what libraries enqueue may wait.
#include "doubles/cuda_runtime.hpp"
#include "runtime/cuda_stream.hpp"

namespace kzero::runtime {

Execution make_stream() { return Kokkos::Experimental::partition_space(Execution(), 1)[0]; }

cudaStream_t stream_of(const Execution& stream) {
  return doubles::stream_for(stream.impl_internal_space_instance());
}

int device_number() { return doubles::own_device; }

}  // namespace kzero::runtime
