#include "kernels/softmax_cross_entropy.hpp"

namespace kzero::kernels {

void cross_entropy_of_partials(const Execution& exec, const PartialSoftmaxes& partials,
                               Vector<float> losses) {
  Kokkos::parallel_for(
      "kzero::kernels::cross_entropy_of_partials", tensor::Range(exec, 0, losses.extent(0)),
      KOKKOS_LAMBDA(Index i) { losses(i) = WholeRow(partials, i).loss(); });
}

}  // namespace kzero::kernels
