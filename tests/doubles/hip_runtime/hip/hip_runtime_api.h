// In place of HIP's runtime, on hosts: what kzero calls of it, by way of the stand-in for CUDA's.
#pragma once

#include <cuda_runtime_api.h>

using hipDeviceProp_t = cudaDeviceProp;
using hipError_t = cudaError_t;
using hipEvent_t = cudaEvent_t;
using hipStream_t = cudaStream_t;

inline constexpr auto hipErrorNotReady = cudaErrorNotReady;
inline constexpr auto hipSuccess = cudaSuccess;
inline constexpr unsigned hipEventDisableTiming = cudaEventDisableTiming;

inline const char* hipGetErrorString(hipError_t error) { return cudaGetErrorString(error); }
[[nodiscard]] inline hipError_t hipGetLastError() { return cudaGetLastError(); }
[[nodiscard]] inline hipError_t hipPeekAtLastError() { return cudaPeekAtLastError(); }

[[nodiscard]] inline hipError_t hipGetDeviceCount(int* count) { return cudaGetDeviceCount(count); }
[[nodiscard]] inline hipError_t hipSetDevice(int number) { return cudaSetDevice(number); }
[[nodiscard]] inline hipError_t hipGetDeviceProperties(hipDeviceProp_t* properties, int number) {
  return cudaGetDeviceProperties(properties, number);
}
[[nodiscard]] inline hipError_t hipDeviceGetPCIBusId(char* bus, int length, int number) {
  return cudaDeviceGetPCIBusId(bus, length, number);
}

[[nodiscard]] inline hipError_t hipEventCreate(hipEvent_t* event) { return cudaEventCreate(event); }
[[nodiscard]] inline hipError_t hipEventCreateWithFlags(hipEvent_t* event, unsigned flags) {
  return cudaEventCreateWithFlags(event, flags);
}
[[nodiscard]] inline hipError_t hipEventDestroy(hipEvent_t event) {
  return cudaEventDestroy(event);
}
[[nodiscard]] inline hipError_t hipEventElapsedTime(float* milliseconds, hipEvent_t begin,
                                                    hipEvent_t end) {
  return cudaEventElapsedTime(milliseconds, begin, end);
}
[[nodiscard]] inline hipError_t hipEventQuery(hipEvent_t event) { return cudaEventQuery(event); }
[[nodiscard]] inline hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream) {
  return cudaEventRecord(event, stream);
}
[[nodiscard]] inline hipError_t hipEventSynchronize(hipEvent_t event) {
  return cudaEventSynchronize(event);
}
[[nodiscard]] inline hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event,
                                                   unsigned flags) {
  return cudaStreamWaitEvent(stream, event, flags);
}
