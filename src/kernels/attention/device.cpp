#include "kernels/attention/device_tiles.hpp"

namespace kzero::kernels {

struct DeviceArithmetic : PlainArithmetic {};

#define KZERO_INSTANTIATE(T) template class device::Attention<DeviceArithmetic, T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
