#include "kernels/attention/attention.hpp"

#include "kernels/attention/device.hpp"
#include "kernels/attention/host.hpp"

namespace kzero::kernels {

Index device::attention_scratch_bytes(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.sequence * static_cast<Index>(sizeof(float));
}

template <class T>
Index attention_scratch_bytes(const AttentionShape& shape, [[maybe_unused]] Index threads) {
  if constexpr (tensor::on_host) {
    return host::attention_scratch_bytes<T>(shape, threads);
  } else {
    return device::attention_scratch_bytes(shape);
  }
}

template <class T>
void attention_forward(const Execution& exec, const AttentionShape& shape,
                       const HeadOperands<const T>& in, Matrix<T> out, Matrix<float> log_sum,
                       Vector<float> scratch) {
  if constexpr (tensor::on_host) {
    host::attention_forward<T>(exec, shape, in, out, log_sum, scratch);
  } else {
    device::attention_forward<DeviceArithmetic, T>(exec, shape, in, out, log_sum);
  }
}

template <class T>
void attention_backward(const Execution& exec, const AttentionShape& shape,
                        const HeadOperands<const T>& in, Matrix<const T> out,
                        Matrix<const float> log_sum, Matrix<const T> dout,
                        const HeadOperands<T>& gradients, Vector<float> scratch) {
  if constexpr (tensor::on_host) {
    host::attention_backward<T>(exec, shape, in, out, log_sum, dout, gradients, scratch);
  } else {
    device::attention_backward<DeviceArithmetic, T>(exec, shape, in, out, log_sum, dout, gradients,
                                                    scratch);
  }
}

#define KZERO_INSTANTIATE(T)                                                                  \
  template Index attention_scratch_bytes<T>(const AttentionShape&, Index);                    \
  template void attention_forward<T>(const Execution&, const AttentionShape&,                 \
                                     const HeadOperands<const T>&, Matrix<T>, Matrix<float>,  \
                                     Vector<float>);                                          \
  template void attention_backward<T>(                                                        \
      const Execution&, const AttentionShape&, const HeadOperands<const T>&, Matrix<const T>, \
      Matrix<const float>, Matrix<const T>, const HeadOperands<T>&, Vector<float>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
