// Code that the back ends behind Gemm share, and the table of a build's back ends. A back end is
// one file, gemm_NAME.cpp, and its factory's line in the table. Only make_gemm and tests read
// either.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "tensor/gemm.hpp"

namespace kzero::tensor {

struct BackendEntry {
  GemmBackend name;
  std::unique_ptr<Gemm> (*make)();
};

/// The back ends of this build, its default first; never empty. gemm_host.cpp, gemm_cuda.cpp or
/// gemm_device.cpp defines it: a build compiles one of them.
std::span<const BackendEntry> backend_table();

template <class Backend>
std::unique_ptr<Gemm> make() {
  return std::make_unique<Backend>();
}

/// A plain Kokkos kernel with one output element per work item, for tests and for devices without a
/// library.
class ReferenceGemm : public Gemm {
 public:
  void run(const Execution& exec, const GemmProblem& product) override;
  std::string arithmetic() const override { return "loops in place of a GEMM library"; }
};

/// Runs GEMMs of any type through an fp32 library. Copies blocks of A and B as fp32 to buffers of
/// constant size, multiplies them, and rounds the block of C once.
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
  std::unique_ptr<float[]> a_, b_, c_;  // become resident with the first GEMM
};

/// Writes bias and addend (or zeros) to an fp32 C, so that a library call only has to add.
void prepare_output(const Execution& exec, const GemmProblem& product);

/// cuBLASLt or, in HIP builds, hipBLASLt; all types, with one call per GEMM. The plan of a GEMM
/// (how to call the library) is cached by shape. The choice of algorithm depends only on shapes and
/// alignments, and on a table if there is one (run.algorithms), never on timing.
class CublasLtGemm : public Gemm {
 public:
  /// Of the library's scratch. NVIDIA recommends this for GPUs of the Hopper generation.
  static constexpr Index scratch_bytes = Index{32} << 20;
  static constexpr Index workspace_alignment = 256;
  /// The library's scratch, then a bias, and room for the alignment.
  static constexpr Index workspace_bytes(Index bias_bytes) {
    return scratch_bytes + bias_bytes + workspace_alignment;
  }

  /// Makes the back end for the current device.
  CublasLtGemm();
  ~CublasLtGemm() override;
  void run(const Execution& exec, const GemmProblem& product) override;
  std::string arithmetic() const override;
  bool fuses_gelu_gradient(Dtype type, Index n) const override;
  void use_workspace(void* data, Index bytes) override;
  AlgorithmChoice* algorithms() override;

 private:
  struct Plans;
  std::unique_ptr<Plans> plans_;
};

}  // namespace kzero::tensor
