// The products of the double of cublasLtMatmul, with plain loops.
#pragma once

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>

namespace kzero::tests {

/// A column-major matrix.
struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;
  std::int64_t stride;

  bool operator==(const Layout&) const = default;
};

/// Everything but the pointers that a product is called with.
struct Shape {
  cublasOperation_t a_operation, b_operation;
  std::uint32_t epilogue;
  std::int64_t aux_stride;
  Layout a, b, c, d;

  bool operator==(const Shape&) const = default;
};

struct Call {
  float alpha, beta;
  const void *a, *b, *c;
  void* d;
  void* workspace;
  std::size_t workspace_size;
};

/// The operands that an epilogue reads.
struct EpilogueOperands {
  const void* bias;
  const void* aux;
};

bool adds_bias(const Shape& s);
bool has_gelu_gradient(const Shape& s);

std::size_t size_of(cudaDataType_t type);

bool overlap(const void* x, const Layout& of_x, const void* y, const Layout& of_y);

/// D = epilogue(alpha op(A) op(B) + beta C), C not read without beta.
void multiply(const Shape& s, const Call& call, const EpilogueOperands& operands);

}  // namespace kzero::tests
