// A stream as CUDA libraries want it. For files of the CUDA build only.
#pragma once

#include <cuda_runtime_api.h>

#include <string>

#include "runtime/execution.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream);

/// "device 0000:18:00.0": the one that this process computes on, by its place on the node's bus.
std::string device_name();

}  // namespace kzero::runtime
