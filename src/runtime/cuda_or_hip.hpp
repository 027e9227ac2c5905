// The runtime of the build's devices. HIP has CUDA's functions under its own names, so sources for
// both are written with CUDA's names. In HIP builds this header replaces them.
#pragma once

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

}  // namespace kzero::runtime
