#include "kernels/attention_device_tiles.hpp"

namespace kzero::kernels {

struct DeviceArithmetic : PlainArithmetic {};

KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, float)
KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, bf16)
KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, fp16)

}  // namespace kzero::kernels
