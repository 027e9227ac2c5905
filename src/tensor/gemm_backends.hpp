// The backends behind Gemm. Only make_gemm and the tests name them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tensor/gemm.hpp"

namespace kzero::tensor {

/// A plain Kokkos kernel, one output element a work item: for tests and for devices without a
/// library.
class ReferenceGemm : public Gemm {
 public:
  void run(const Execution& exec, const Product& product) override;
};

/// 16-bit products through an fp32 library: blocks of A and B are widened into buffers of constant
/// size, multiplied, and the block of C is rounded once.
class BlockedGemm {
 public:
  /// c[m,n] += op(a) op(b) in fp32, row-major, with the strides in memory.
  using Kernel = void (*)(Transpose a_transpose, Transpose b_transpose, Index m, Index n, Index k,
                          const float* a, Index a_stride, const float* b, Index b_stride, float* c,
                          Index c_stride);

  explicit BlockedGemm(Kernel kernel);
  void run(const Execution& exec, const Product& product);

 private:
  template <class T, class Out>
  void run_typed(const Execution& exec, const Product& product);

  Kernel kernel_;
  std::vector<float> a_, b_, c_;
};

/// Puts bias and addend (or zeros) into an fp32 C, so that a library call only has to add.
void prepare_output(const Execution& exec, const Product& product);

class BlasGemm : public Gemm {
 public:
  BlasGemm();
  void run(const Execution& exec, const Product& product) override;

 private:
  BlockedGemm blocked_;
};

/// fp32 through oneDNN's sgemm, bf16 through its matmul primitives (kept by shape), fp16 widened.
class OneDnnGemm : public Gemm {
 public:
  OneDnnGemm();
  ~OneDnnGemm() override;
  void run(const Execution& exec, const Product& product) override;

 private:
  struct Primitives;
  std::unique_ptr<Primitives> primitives_;
  BlockedGemm blocked_;
};

}  // namespace kzero::tensor
