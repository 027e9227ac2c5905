#include "kernels/attention/device_tiles.hpp"

namespace kzero::kernels {

struct DeviceArithmetic : PlainArithmetic {};

#define KZERO_INSTANTIATE(T) KZERO_INSTANTIATE_ATTENTION(DeviceArithmetic, T)
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
