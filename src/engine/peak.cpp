#include "engine/peak.hpp"

#include <algorithm>
#include <chrono>
#include <limits>

#include "engine/product.hpp"

namespace kzero::engine {

namespace {

struct MeasuredPeak {
  double flops_per_second = 0;
  bool is_disturbed = false;  // repetitions differed because something else used the cores
};

double seconds_of(const Product& product, const tensor::Execution& exec, tensor::Gemm& gemm) {
  const auto begin = std::chrono::steady_clock::now();
  product.run(gemm);
  exec.fence("kzero::engine::peak_product");
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

MeasuredPeak measure_peak(const tensor::Execution& exec, tensor::Gemm& gemm, Dtype precision,
                          Index width) {
  constexpr int repeats = 6;
  constexpr double longest_mean = 1.15;  // limit of mean / shortest repetition
  const Product product(exec, {width, width, width}, precision);
  seconds_of(product, exec, gemm);  // warm-up
  double best = std::numeric_limits<double>::infinity(), sum = 0;
  for (int i = 0; i < repeats; ++i) {
    const double seconds = seconds_of(product, exec, gemm);
    best = std::min(best, seconds);
    sum += seconds;
  }
  return {product.operations() / best, sum > longest_mean * repeats * best};
}

}  // namespace

Index choose_peak_width(const grid::Group& world, const tensor::Execution& exec, tensor::Gemm& gemm,
                        Dtype precision) {
  constexpr Index small = 768, large = 4096;
  if (tensor::on_host) return small;
  constexpr double ratio = static_cast<double>(large) / small;
  const Product product(exec, {small, small, small}, precision);
  seconds_of(product, exec, gemm);  // warm-up
  const bool is_slow = seconds_of(product, exec, gemm) * ratio * ratio * ratio > 1;
  return world.max(is_slow ? 1 : 0) == 1 ? small : large;
}

metrics::Peak find_peak(const deck::Config& config, const grid::Group& world, tensor::Gemm& gemm) {
  if (const double given = config.run.peak_tflops; given > 0)
    return {.flops_per_second = given * 1e12 * world.size()};
  const Index width = choose_peak_width(world, {}, gemm, config.train.precision);
  const MeasuredPeak mine = measure_peak({}, gemm, config.train.precision, width);
  return {.flops_per_second = world.sum(mine.flops_per_second),
          .measured_width = width,
          .is_disturbed = world.max(mine.is_disturbed ? 1 : 0) == 1};
}

}  // namespace kzero::engine
