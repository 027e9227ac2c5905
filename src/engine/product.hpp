// A matrix product of random operands, used to measure a GEMM back end and to compare its bits.
#pragma once

#include <cstdint>

#include "tensor/gemm.hpp"

namespace kzero::engine {

struct ProductShape {
  Index m = 1, n = 1, k = 1;
};

/// C[m,n] = A[m,k] B[k,n] in one precision. The operands are normally distributed and depend only
/// on the shape and the precision. Zeros would switch few wires. A device would multiply them at a
/// clock rate that it cannot sustain otherwise.
class Product {
 public:
  Product(const tensor::Execution& exec, const ProductShape& shape, Dtype precision);

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
