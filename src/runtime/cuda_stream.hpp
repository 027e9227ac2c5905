// Access to the device and streams behind Kokkos, for files of builds for CUDA or HIP only.
#pragma once

// HIP has CUDA's functions under its own names, so sources for both are written with CUDA's names.
// In HIP builds these replace them.
#ifdef KZERO_HIP
#include <hip/hip_runtime_api.h>

#define cudaDeviceGetPCIBusId hipDeviceGetPCIBusId
#define cudaDeviceProp hipDeviceProp_t
#define cudaErrorNotReady hipErrorNotReady
#define cudaError_t hipError_t
#define cudaEventCreate hipEventCreate
#define cudaEventCreateWithFlags hipEventCreateWithFlags
#define cudaEventDestroy hipEventDestroy
#undef cudaEventDisableTiming  // a macro of CUDA's header, which tests on hosts include
#define cudaEventDisableTiming hipEventDisableTiming
#define cudaEventElapsedTime hipEventElapsedTime
#define cudaEventQuery hipEventQuery
#define cudaEventRecord hipEventRecord
#define cudaEventSynchronize hipEventSynchronize
#define cudaEvent_t hipEvent_t
#define cudaGetDeviceCount hipGetDeviceCount
#define cudaGetDeviceProperties hipGetDeviceProperties
#define cudaGetErrorString hipGetErrorString
#define cudaGetLastError hipGetLastError
#define cudaPeekAtLastError hipPeekAtLastError
#define cudaSetDevice hipSetDevice
#define cudaStreamWaitEvent hipStreamWaitEvent
#define cudaStream_t hipStream_t
#define cudaSuccess hipSuccess
#else
#include <cuda_runtime_api.h>
#endif

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

/// The name by which this build calls a function of CUDA or its libraries, for messages:
/// "hipEventRecord" for "cudaEventRecord". Other texts remain as they are.
inline std::string name_here(std::string_view call) {
#ifdef KZERO_HIP
  for (const std::string_view prefix : {"cuda", "cu"}) {
    if (call.starts_with(prefix)) return "hip" + std::string(call.substr(prefix.size()));
  }
#endif
  return std::string(call);
}

cudaStream_t stream_of(const Execution& stream);

/// The runtime's number for the device that this process computes on.
int device_number();

/// Throws Error(other) with the name of the call unless it succeeded.
inline void require(cudaError_t status, const char* call) {
  KZERO_REQUIRE(status == cudaSuccess, ExitCode::other, "{} failed: {}", name_here(call),
                cudaGetErrorString(status));
}

}  // namespace kzero::runtime
