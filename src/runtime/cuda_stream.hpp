// Access to the CUDA device and streams behind Kokkos, for files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include "base/error.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream);

/// CUDA's number for the device that this process computes on.
int device_number();

/// Throws Error(other) with the name of the call unless it succeeded.
inline void require(cudaError_t status, const char* call) {
  KZERO_REQUIRE(status == cudaSuccess, ExitCode::other, "{} failed: {}", call,
                cudaGetErrorString(status));
}

}  // namespace kzero::runtime
