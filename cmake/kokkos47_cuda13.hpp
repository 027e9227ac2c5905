// For Kokkos 4.7.0 with CUDA 12.9 or newer. Compiled in (-include) before everything that sees
// Kokkos' CUDA headers, in Kokkos itself and here; empty for host compilers.
#pragma once

#if defined(__cplusplus) && defined(__CUDACC__)
#include <cuda_runtime.h>

// nvcc gives members after an empty [[no_unique_address]] member other places in device code than
// in host code. Kokkos' views have such members, so a kernel would read a wrong extent. Kokkos
// 4.7.2 leaves the attribute out as well (kokkos/kokkos#8615).
#if CUDART_VERSION >= 12090
#define MDSPAN_IMPL_USE_ATTRIBUTE_NO_UNIQUE_ADDRESS 1
#define MDSPAN_IMPL_NO_UNIQUE_ADDRESS
#endif

// Two runtime calls that lost the signatures that Kokkos uses get them back as overloads.
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
