// For the one pair that needs it, Kokkos 4.7.0 with CUDA 13: two runtime calls that lost the
// signatures Kokkos uses get them back as overloads of the new ones. Compiled in (-include) before
// everything that sees Kokkos' CUDA headers, in Kokkos itself and here; empty for host compilers
// and for CUDA 12.
#pragma once

#if defined(__cplusplus) && defined(__CUDACC__)
#include <cuda_runtime.h>

#if CUDART_VERSION >= 13000
#include <cstddef>

inline cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                            const cudaGraphNode_t* to, std::size_t edges) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, edges);
}

inline cudaError_t cudaMemPrefetchAsync(const void* begin, std::size_t bytes, int device,
                                        cudaStream_t stream) {
  const bool host = device == cudaCpuDeviceId;
  cudaMemLocation target{};
  target.type = host ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
  target.id = host ? 0 : device;
  return cudaMemPrefetchAsync(begin, bytes, target, 0, stream);
}
#endif
#endif
