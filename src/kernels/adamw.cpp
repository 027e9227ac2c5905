#include "kernels/adamw.hpp"

namespace kzero::kernels {

#define KZERO_INSTANTIATE(T)                                                                  \
  template void update_elements<T>(const Execution&, const AdamWStep&, const AdamWArrays<T>&, \
                                   Index);                                                    \
  template void update_elements<T>(HostCores, const AdamWStep&, const AdamWArrays<T>&, Index);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
