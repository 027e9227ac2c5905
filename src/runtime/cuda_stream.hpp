// Access to the device and streams behind Kokkos, for files of builds for CUDA or HIP only.
#pragma once

#include "base/error.hpp"
#include "runtime/cuda_or_hip.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream);

/// The runtime's number for the device that this process computes on.
int device_number();

/// Throws Error(other) with the name of the call unless it succeeded.
inline void require(cudaError_t status, const char* call) {
  KZERO_REQUIRE(status == cudaSuccess, ExitCode::other, "{} failed: {}", name_here(call),
                cudaGetErrorString(status));
}

}  // namespace kzero::runtime
