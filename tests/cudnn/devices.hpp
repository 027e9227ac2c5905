// Devices for which cuDNN makes plans although they are not there.
#pragma once

#include <fmt/format.h>

#include "kernels/attention/cudnn_plans.hpp"

namespace kzero::tests {

/// An A100, H100 or B200, as far as plans depend on it.
inline kernels::DescribedDevice device(int capability) {
  const int processors = capability == 80 ? 108 : capability == 90 ? 132 : 148;
  const int shared_bytes = capability == 80 ? 166912 : 232448;
  return {capability, fmt::format(R"({{
    "version": 1, "deviceVer": {}, "deviceName": "", "driverVer": 13000,
    "multiProcessorCount": {}, "smCountOrigin": 0, "warpSize": 32,
    "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
    "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048, "maxCtasPerSM": 32,
    "regsPerBlock": 65536, "maxRegistersPerSM": 65536,
    "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": {},
    "reservedSharedMemoryPerBlock": 1024, "oversizedSharedMemoryPerBlock": 0,
    "totalGlobalMem": 85899345920, "l2CacheSize": 52428800, "memoryBusWidth": 5120,
    "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "cudaDeviceId": 0, "pciDeviceId": 0,
    "isTccDriver": 0, "supportCoopLaunch": 1}})",
                                  capability * 10, processors, shared_bytes)};
}

}  // namespace kzero::tests
