#include "engine/product.hpp"

#include "base/checksum.hpp"
#include "kernels/initialize.hpp"

namespace kzero::engine {

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

}  // namespace kzero::engine
