#include "kernels/attention_device_tiles.hpp"
#include "kernels/tile_product_cuda.hpp"

namespace kzero::kernels {

struct DeviceArithmetic : TensorCoreArithmetic<team_warps, warp_lanes> {};

KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, float)
KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, bf16)
KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, fp16)

}  // namespace kzero::kernels
