#include "runtime/cuda_stream.hpp"

namespace kzero::runtime {

hipStream_t stream_of(const Execution& stream) { return stream.hip_stream(); }

int device_number() { return Execution().hip_device(); }

}  // namespace kzero::runtime
