#include "kernels/host/few_rows.hpp"

namespace kzero::kernels {

namespace {

/// One thread per element: neighbours read neighbouring columns.
template <class T, class Out>
void device_in_out(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for(
      "kzero::kernels::few_rows_by_columns", tensor::Range(exec, 0, p.rows * p.out),
      KOKKOS_LAMBDA(Index element) {
        const Index i = element / p.out, column = element % p.out;
        const T* x = p.x + i * p.in;
        float sum = 0;
        for (Index k = 0; k < p.in; ++k)
          sum += static_cast<float>(x[k]) * static_cast<float>(p.weight[k * p.out + column]);
        p.store(i, column, sum);
      });
}

/// One team per row of the weight.
template <class T, class Out>
void device_out_in(const Execution& exec, const FewRowsProduct<T, Out>& p) {
  Kokkos::parallel_for(
      "kzero::kernels::few_rows_by_outputs", Policy(exec, static_cast<int>(p.out), Kokkos::AUTO),
      KOKKOS_LAMBDA(const Team& team) {
        const Index o = team.league_rank();
        const T* w = p.weight + o * p.in;
        for (Index i = 0; i < p.rows; ++i) {
          const auto product = [](float a, float b) { return a * b; };
          const float sum = sum_of(team, p.in, product, p.x + i * p.in, w);
          Kokkos::single(Kokkos::PerTeam(team), [=]() { p.store(i, o, sum); });
        }
      });
}

}  // namespace

template <class T, class Out>
void few_rows_product(const Execution& exec, const FewRows<T>& f, Matrix<Out> y) {
  const Index rows = y.extent(0), in = f.x.extent(1), out = y.extent(1);
  const FewRowsProduct<T, Out> p{f.x.data(), f.weight.data(), f.bias, f.addend, y.data(), rows, in,
                                 out};
  const bool is_in_out = f.order == WeightOrder::in_out;
  if constexpr (tensor::on_host) {
    is_in_out ? host::few_rows_in_out(exec, p) : host::few_rows_out_in(exec, p);
  } else {
    is_in_out ? device_in_out(exec, p) : device_out_in(exec, p);
  }
}

#define KZERO_INSTANTIATE(T) \
  template void few_rows_product<T, T>(const Execution&, const FewRows<T>&, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE
template void few_rows_product<bf16, float>(const Execution&, const FewRows<bf16>&, Matrix<float>);
template void few_rows_product<fp16, float>(const Execution&, const FewRows<fp16>&, Matrix<float>);

}  // namespace kzero::kernels
