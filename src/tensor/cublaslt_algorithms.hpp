// Algorithms of cuBLASLt: their attributes, what makes one from them, and which is the fastest. For
// builds for CUDA only; hipBLASLt's algorithms have no attributes.
#pragma once

#include <cublasLt.h>

#include <map>
#include <optional>
#include <string>

#include "runtime/execution.hpp"
#include "tensor/algorithms.hpp"

namespace kzero::tensor::blaslt {

/// A call of cublasLtMatmul without its algorithm. C is what the library adds with the factor beta.
struct Call {
  cublasLtHandle_t handle;
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t a_layout, b_layout, c_layout, d_layout;
  cudaDataType_t in, added, out;
  Index a_alignment, b_alignment, c_alignment, d_alignment;
  std::size_t workspace_size;
  const void *a = nullptr, *b = nullptr, *c = nullptr;
  void* d = nullptr;
  float beta = 0;
  void* workspace = nullptr;
};

cublasStatus_t multiply(const runtime::Execution& exec, const Call& call,
                        const cublasLtMatmulAlgo_t& algorithm);

/// Makes an algorithm for the call; needs no addresses. Empty if the library does not accept it, or
/// if it needs more workspace or larger alignments than the call has, or adds in no fixed order.
std::optional<cublasLtMatmulAlgo_t> restored(const Call& call, const Algorithm& algorithm);

/// The times of one product, and the fastest algorithm: empty if it is that of the heuristic.
struct Fastest {
  double heuristic_ms = 0, ms = 0;
  std::optional<Algorithm> algorithm{};
};

/// Times the first algorithms of the heuristic's list that restored() makes again, in turns.
/// Overwrites D. Throws Error(other) if the heuristic's own choice fails.
Fastest fastest(const runtime::Execution& exec, const Call& call,
                cublasLtMatmulPreference_t preference);

class Choice : public AlgorithmChoice {
 public:
  /// Name and version of the library, before any other call.
  void set_library(const std::string& library) { library_ = library; }

  void use(const AlgorithmTable& table) override;
  Use used() const override { return used_; }
  void measure() override { measures_ = true; }
  MeasuredAlgorithms measured() const override;

  /// Returns the table's algorithm for a new product; empty if it has none. Throws Error(usage) if
  /// the library does not accept it.
  std::optional<cublasLtMatmulAlgo_t> find(const std::string& product, const Call& call);

  bool measures() const { return measures_; }

  /// Counts a call. Compares algorithms if it is the first of its product, for the first hundred
  /// or so products.
  void compare(const runtime::Execution& exec, const std::string& product, const Call& call,
               cublasLtMatmulPreference_t preference);

  /// What the table adds to the name of the library's arithmetic.
  std::string arithmetic() const;

 private:
  struct Measured {
    Fastest fastest;
    Index calls = 0;
  };

  std::string library_;
  std::optional<AlgorithmTable> table_;
  Use used_;
  bool measures_ = false;
  std::map<std::string, Measured> measured_;
};

}  // namespace kzero::tensor::blaslt
