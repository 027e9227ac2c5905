#include "kernels/softmax_cross_entropy.hpp"

#include "kernels/softmax_cross_entropy_device.hpp"
#include "kernels/softmax_cross_entropy_host.hpp"

namespace kzero::kernels {

void cross_entropy_forward(const Execution& exec, StridedMatrix<const float> logits,
                           Vector<const Token> targets, Vector<float> losses) {
  if constexpr (tensor::on_host) {
    host::cross_entropy_forward(exec, logits, targets, losses);
  } else {
    device::cross_entropy_forward(exec, logits, targets, losses);
  }
}

template <class T>
void cross_entropy_with_gradient(const Execution& exec, StridedMatrix<float> logits,
                                 Vector<const Token> targets, float scale, Vector<float> losses,
                                 StridedMatrix<T> dlogits) {
  if constexpr (tensor::on_host) {
    host::cross_entropy_with_gradient<T>(exec, logits, targets, scale, losses, dlogits);
  } else {
    device::cross_entropy_with_gradient<T>(exec, logits, targets, scale, losses, dlogits);
  }
}

void partial_softmax(const Execution& exec, StridedMatrix<float> logits, Index first_token,
                     Vector<const Token> targets, Matrix<float> partial) {
  if constexpr (tensor::on_host) {
    host::partial_softmax(exec, logits, first_token, targets, partial);
  } else {
    device::partial_softmax(exec, logits, first_token, targets, partial);
  }
}

void cross_entropy_of_partials(const Execution& exec, const PartialSoftmaxes& partials,
                               Vector<float> losses) {
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials", tensor::Range(exec, 0, losses.extent(0)),
      KOKKOS_LAMBDA(Index i) { losses(i) = WholeRow(partials, i).loss(); });
}

template <class T>
void cross_entropy_of_partials_with_gradient(const Execution& exec,
                                             const PartialSoftmaxes& partials,
                                             const SplitLogits& logits, Vector<const Token> targets,
                                             float scale, Vector<float> losses,
                                             StridedMatrix<T> dlogits) {
  if constexpr (tensor::on_host) {
    host::cross_entropy_of_partials_with_gradient<T>(exec, partials, logits, targets, scale, losses,
                                                     dlogits);
  } else {
    device::cross_entropy_of_partials_with_gradient<T>(exec, partials, logits, targets, scale,
                                                       losses, dlogits);
  }
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void cross_entropy_with_gradient<T>(const Execution&, StridedMatrix<float>,           \
                                               Vector<const Token>, float, Vector<float>,        \
                                               StridedMatrix<T>);                                \
  template void cross_entropy_of_partials_with_gradient<T>(                                      \
      const Execution&, const PartialSoftmaxes&, const SplitLogits&, Vector<const Token>, float, \
      Vector<float>, StridedMatrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
