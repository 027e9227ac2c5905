#include "kernels/adamw.hpp"

namespace kzero::kernels {

#define KZERO_INSTANTIATE(T)                                                         \
  template void update_parts<T>(const Execution&, const UpdateTable<T, AdamWStep>&); \
  template void update_parts<T>(HostCores, const UpdateTable<T, AdamWStep>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
