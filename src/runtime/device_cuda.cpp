#include "runtime/cuda_stream.hpp"

namespace kzero::runtime {

cudaStream_t stream_of(const Execution& stream) { return stream.cuda_stream(); }

int device_number() { return Execution().cuda_device(); }

}  // namespace kzero::runtime
