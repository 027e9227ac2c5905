// Access to the CUDA stream of an execution space, for files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/execution.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream);

/// The device that this process computes on, by its PCI address: "device 0000:18:00.0".
std::string device_name();

}  // namespace kzero::runtime
