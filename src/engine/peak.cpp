#include "engine/peak.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "kernels/initialize.hpp"

namespace kzero::engine {

namespace {

using Bytes = Kokkos::View<std::byte*, tensor::Memory>;

/// Fills the operand with normal numbers. Of zeros few wires change: a device multiplies them at a
/// clock rate that it does not keep with others.
template <class T>
void draw(const tensor::Execution& exec, std::uint64_t number, const Bytes& operand) {
  const auto count = operand.size() / sizeof(T);
  const Kokkos::View<float*, tensor::Memory> drawn(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kzero::engine::peak_drawn"), count);
  const tensor::Vector<float> values(drawn.data(), count);
  kernels::draw_normal(exec, 0, number, {}, 1, values);
  kernels::round_to<T>(exec, values,
                       tensor::Vector<T>(reinterpret_cast<T*>(operand.data()), count));
  exec.fence("kzero::engine::peak_operand");  // before the drawn numbers go
}

}  // namespace

MeasuredPeak measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision) {
  constexpr Index size = peak_width;
  constexpr int repeats = 6;
  constexpr double longest_mean = 1.15;  // of the repetitions, in units of the shortest one
  const Index bytes = size * size * bytes_of(precision);
  const Bytes a("kzero::engine::peak_a", bytes), b("kzero::engine::peak_b", bytes),
      c("kzero::engine::peak_c", bytes);
  with_type(precision, [&](auto type) {
    draw<decltype(type)>(exec, 0, a);
    draw<decltype(type)>(exec, 1, b);
  });
  tensor::GemmProblem product;
  product.m = product.n = product.k = size;
  product.a = {a.data(), size};
  product.b = {b.data(), size};
  product.c = c.data();
  product.c_stride = size;
  product.in = product.out = precision;
  double best = std::numeric_limits<double>::infinity(), sum = 0;
  for (int i = 0; i <= repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    gemm.run(exec, product);
    exec.fence("kzero::engine::peak_product");
    if (i == 0) continue;  // it prepares the others
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
    best = std::min(best, passed.count());
    sum += passed.count();
  }
  return {2.0 * static_cast<double>(size) * size * size / best,
          sum > longest_mean * repeats * best};
}

metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm) {
  if (const double given = config.run.peak_tflops; given > 0)
    return {.flops_per_second = given * 1e12 * world.size()};
  const MeasuredPeak mine = measure_peak({}, gemm, config.train.precision);
  return {.flops_per_second = world.sum(mine.flops_per_second),
          .measured_width = peak_width,
          .is_disturbed = world.max(mine.is_disturbed ? 1 : 0) == 1};
}

}  // namespace kzero::engine
