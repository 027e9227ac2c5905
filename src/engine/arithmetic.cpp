#include "engine/arithmetic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "base/checksum.hpp"
#include "kernels/initialize.hpp"
#include "runtime/build_facts.hpp"
#include "runtime/execution.hpp"
#include "tensor/gemm.hpp"

namespace kzero::engine {

std::string arithmetic_of(const tensor::Gemm& gemm, const std::string& model) {
  const std::string device = runtime::device_kind();
  return fmt::format("{}, {}, {}{}{}", runtime::kernel_arithmetic(),
                     device.empty() ? runtime::Execution::name() : device, gemm.arithmetic(),
                     model.empty() ? "" : ", ", model);
}

namespace {

template <class T>
void draw(const tensor::Execution& exec, std::uint64_t number, std::byte* data, Index count) {
  const Kokkos::View<float*, tensor::Memory> drawn(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kzero::engine::product_drawn"), count);
  const tensor::Vector<float> values(drawn.data(), count);
  kernels::draw_normal(exec, 0, number, {}, 1, values);
  kernels::round_to<T>(exec, values, tensor::Vector<T>(reinterpret_cast<T*>(data), count));
  exec.fence("kzero::engine::product_operand");  // before the drawn numbers are freed
}

}  // namespace

Product::Product(const tensor::Execution& exec, const ProductShape& shape, Dtype precision)
    : exec_(exec),
      shape_(shape),
      precision_(precision),
      a_("kzero::engine::product_a", shape.m * shape.k * bytes_of(precision)),
      b_("kzero::engine::product_b", shape.k * shape.n * bytes_of(precision)),
      c_("kzero::engine::product_c", shape.m * shape.n * bytes_of(precision)) {
  with_type(precision, [&](auto type) {
    draw<decltype(type)>(exec_, 0, a_.data(), shape.m * shape.k);
    draw<decltype(type)>(exec_, 1, b_.data(), shape.k * shape.n);
  });
}

void Product::run(tensor::Gemm& gemm) const {
  tensor::GemmProblem product;
  product.m = shape_.m, product.n = shape_.n, product.k = shape_.k;
  product.a = {a_.data(), shape_.k};
  product.b = {b_.data(), shape_.n};
  product.c = c_.data();
  product.c_stride = shape_.n;
  product.in = product.out = precision_;
  gemm.run(exec_, product);
}

std::uint64_t Product::digest() const {
  const Kokkos::View<std::byte*, Kokkos::HostSpace> host(
      Kokkos::view_alloc(Kokkos::WithoutInitializing, "kzero::engine::product_on_host"), c_.size());
  Kokkos::deep_copy(exec_, host, c_);
  exec_.fence("kzero::engine::product_copied");
  return checksum(std::span<const std::byte>(host.data(), host.size()));
}

double Product::operations() const {
  return 2.0 * static_cast<double>(shape_.m) * static_cast<double>(shape_.n) *
         static_cast<double>(shape_.k);
}

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
