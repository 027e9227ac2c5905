// Access to the CUDA device and streams behind Kokkos, for files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "base/error.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream);

/// CUDA's number for the device that this process computes on.
int device_number();

/// The device that this process computes on, by its PCI address: "device 0000:18:00.0".
std::string device_name();

/// Throws Error(other) with the name of the call unless it succeeded.
inline void require(cudaError_t status, const char* call) {
  KZERO_REQUIRE(status == cudaSuccess, ExitCode::other, "{} failed: {}", call,
                cudaGetErrorString(status));
}

}  // namespace kzero::runtime
