// The back ends of builds for devices without a library for attention.
#include "kernels/attention/backends.hpp"

namespace kzero::kernels {

template <class T>
std::span<const AttentionEntry<T>> attention_backends() {
  static constexpr AttentionEntry<T> table[] = {
      {AttentionKind::kzero, &make<device::Attention<DeviceArithmetic, T>, T>}};
  return table;
}

#define KZERO_INSTANTIATE(T) template std::span<const AttentionEntry<T>> attention_backends<T>();
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
