// The back ends of Gemm. Only make_gemm and the tests name them.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "tensor/gemm.hpp"

namespace kzero::tensor {

/// Makes one of backends(). A build has one of gemm_host.cpp, gemm_cuda.cpp and gemm_device.cpp,
/// which defines its back ends.
std::unique_ptr<Gemm> make_backend(Backend backend);

/// A plain Kokkos kernel with one output element per work item: for tests and for devices without a
/// library.
class ReferenceGemm : public Gemm {
 public:
  void run(const Execution& exec, const GemmProblem& product) override;
};

/// Runs 16-bit GEMMs through an fp32 library: blocks of A and B are converted to fp32 in buffers of
/// constant size, multiplied, and the block of C is rounded once.
class BlockedGemm {
 public:
  /// Computes c[m,n] += op(a) op(b) in fp32, row-major, with the strides in memory.
  using Kernel = void (*)(Transpose a_transpose, Transpose b_transpose, Index m, Index n, Index k,
                          const float* a, Index a_stride, const float* b, Index b_stride, float* c,
                          Index c_stride);

  explicit BlockedGemm(Kernel kernel);
  void run(const Execution& exec, const GemmProblem& product);

 private:
  template <class T, class Out>
  void run_typed(const Execution& exec, const GemmProblem& product);

  Kernel kernel_;
  std::vector<float> a_, b_, c_;
};

/// Writes bias and addend (or zeros) to an fp32 C, so that a library call only has to add.
void prepare_output(const Execution& exec, const GemmProblem& product);

class BlasGemm : public Gemm {
 public:
  BlasGemm();
  void run(const Execution& exec, const GemmProblem& product) override;

 private:
  BlockedGemm blocked_;
};

/// oneDNN: fp32 through its sgemm, bf16 through its matmul primitives (cached by shape), fp16
/// converted to fp32.
class OneDnnGemm : public Gemm {
 public:
  OneDnnGemm();
  ~OneDnnGemm() override;
  void run(const Execution& exec, const GemmProblem& product) override;

 private:
  struct Primitives;
  std::unique_ptr<Primitives> primitives_;
  BlockedGemm blocked_;
};

/// cuBLASLt, for all types, with one call per GEMM; its parameters (the plan) are cached by shape.
/// The choice of an algorithm depends on shapes and alignments alone, never on timing.
class CublasLtGemm : public Gemm {
 public:
  /// NVIDIA recommends 32 MiB for GPUs of the Hopper generation; the rest is for the alignment.
  static constexpr Index workspace_alignment = 256;
  static constexpr Index workspace_bytes = (Index{32} << 20) + workspace_alignment;

  /// Makes the back end for the current device.
  CublasLtGemm();
  ~CublasLtGemm() override;
  void run(const Execution& exec, const GemmProblem& product) override;
  bool fuses_gelu_gradient(Dtype type, Index n) const override;
  void use_workspace(void* data, Index bytes) override;

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace kzero::tensor
