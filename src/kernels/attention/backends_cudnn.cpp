// The back ends of builds for CUDA with cuDNN.
#include "kernels/attention/backends.hpp"

namespace kzero::kernels {

template <class T>
std::unique_ptr<AttentionBackend<T>> make_cudnn_attention(const AttentionProblem&);  // cudnn.cpp

template <class T>
std::span<const AttentionEntry<T>> attention_backends() {
  static constexpr AttentionEntry<T> table[] = {
      {AttentionKind::cudnn, &make_cudnn_attention<T>},
      {AttentionKind::kzero, &make<device::Attention<DeviceArithmetic, T>, T>}};
  return table;
}

#define KZERO_INSTANTIATE(T) template std::span<const AttentionEntry<T>> attention_backends<T>();
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
