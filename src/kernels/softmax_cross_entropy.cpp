#include "kernels/softmax_cross_entropy.hpp"

namespace kzero::kernels {

void cross_entropy_of_partials(const Execution& exec, const PartialSoftmaxes& partials,
                               Vector<const Token> targets, Vector<float> losses) {
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials", tensor::Range(exec, 0, losses.extent(0)),
      KOKKOS_LAMBDA(Index i) { losses(i) = targets(i) < 0 ? 0.0F : WholeRow(partials, i).loss(); });
}

}  // namespace kzero::kernels
