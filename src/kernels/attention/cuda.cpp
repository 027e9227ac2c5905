#include "kernels/attention/device_tiles.hpp"
#include "kernels/device/tile_product_cuda.hpp"

namespace kzero::kernels {

struct DeviceArithmetic : TensorCoreArithmetic<team_warps, warp_lanes> {};

#define KZERO_INSTANTIATE(T) template class device::Attention<DeviceArithmetic, T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
