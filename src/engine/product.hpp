// A matrix product of drawn operands, for measuring a GEMM back end and comparing its bits.
#pragma once

#include <cstdint>

#include "tensor/gemm.hpp"

namespace kzero::engine {

struct ProductShape {
  Index m = 1, n = 1, k = 1;
};

/// C[m,n] = A[m,k] B[k,n] in one precision. The operands are normal numbers that depend on the
/// shape alone: of zeros few wires change, and a device multiplies them at a clock rate that it
/// does not keep with others.
class Product {
 public:
  Product(const tensor::Execution& exec, const ProductShape& shape, Dtype precision);

  /// Enqueues the product.
  void run(tensor::Gemm& gemm) const;

  /// Returns a digest of C. Waits for the stream.
  std::uint64_t digest() const;

  double operations() const;

 private:
  using Bytes = Kokkos::View<std::byte*, tensor::Memory>;

  tensor::Execution exec_;
  ProductShape shape_;
  Dtype precision_;
  Bytes a_, b_, c_;
};

}  // namespace kzero::engine
