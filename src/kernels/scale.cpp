#include "kernels/scale.hpp"

namespace kzero::kernels {

template <class T>
void scale_by(const Execution& exec, float factor, Vector<T> x) {
  Kokkos::parallel_for(
      "kzero::kernels::scale", tensor::Range(exec, 0, x.extent(0)),
      KOKKOS_LAMBDA(Index i) { x(i) = static_cast<T>(factor * static_cast<float>(x(i))); });
}

#define KZERO_INSTANTIATE(T) template void scale_by<T>(const Execution&, float, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
