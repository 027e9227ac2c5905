#include "kernels/newton_schulz.hpp"

#include "kernels/element_blocks.hpp"

namespace kzero::kernels {

template <class T>
void copy_rectangle(const Execution& exec, Index rows, Index columns, Rectangle<const T> from,
                    Rectangle<T> to) {
  Kokkos::parallel_for(
      "kzero::kernels::copy_rectangle", Policy(exec, static_cast<int>(rows), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index row = team.league_rank();
        const T* source = from.data + row * from.stride;
        T* target = to.data + row * to.stride;
        for_each(team, columns, [=](Index i) { target[i] = source[i]; });
      });
}

void reciprocal_norm(const Execution& exec, const ExactSum* squares, double epsilon,
                     float* factor) {
  Kokkos::parallel_for(
      "kzero::kernels::reciprocal_norm", tensor::Range(exec, 0, 1), KOKKOS_LAMBDA(Index) {
        *factor = static_cast<float>(1 / (Kokkos::sqrt(squares->value()) + epsilon));
      });
}

template <class T>
void scale(const Execution& exec, const float* factor, Vector<T> x) {
  T* values = x.data();
  for_element_blocks(
      "kzero::kernels::scale", exec, x.extent(0),
      KOKKOS_LAMBDA(const Team& team, Index begin, Index count) {
        const float by = *factor;
        map(
            team, count, values + begin, [=](auto value) { return by * value; }, values + begin);
      });
}

template <class T>
void begin_sum(const Execution& exec, float factor, Vector<const T> x, Vector<float> sum) {
  const T* from = x.data();
  float* to = sum.data();
  for_element_blocks(
      "kzero::kernels::begin_sum", exec, x.extent(0),
      KOKKOS_LAMBDA(const Team& team, Index begin, Index count) {
        map(
            team, count, to + begin, [=](auto value) { return factor * value; }, from + begin);
      });
}

template <class T>
void combine(const Execution& exec, float b, float c, Vector<const float> square, Vector<T> a) {
  const float* squares = square.data();
  T* values = a.data();
  for_element_blocks(
      "kzero::kernels::combine", exec, a.extent(0),
      KOKKOS_LAMBDA(const Team& team, Index begin, Index count) {
        map(
            team, count, values + begin,
            [=](auto value, auto squared) {
              return Arithmetic<decltype(value)>::fma(c, squared, b * value);
            },
            values + begin, squares + begin);
      });
}

#define KZERO_INSTANTIATE(T)                                                           \
  template void copy_rectangle<T>(const Execution&, Index, Index, Rectangle<const T>,  \
                                  Rectangle<T>);                                       \
  template void scale<T>(const Execution&, const float*, Vector<T>);                   \
  template void begin_sum<T>(const Execution&, float, Vector<const T>, Vector<float>); \
  template void combine<T>(const Execution&, float, float, Vector<const float>, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::kernels
