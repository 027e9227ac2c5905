#include "train/peak.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

namespace kzero::train {

double measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision) {
  constexpr Index size = tensor::on_host ? 768 : 4096;  // beyond what the launch takes
  constexpr int repeats = 6;
  const Index bytes = size * size * bytes_of(precision);
  Kokkos::View<std::byte*, tensor::Memory> a("kzero::train::peak_a", bytes),
      b("kzero::train::peak_b", bytes), c("kzero::train::peak_c", bytes);
  tensor::GemmProblem product;
  product.m = product.n = product.k = size;
  product.a = {a.data(), size};
  product.b = {b.data(), size};
  product.c = c.data();
  product.c_stride = size;
  product.in = product.out = precision;
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    gemm.run(exec, product);
    exec.fence("kzero::train::peak_product");
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return 2.0 * static_cast<double>(size) * size * size / best;
}

}  // namespace kzero::train
