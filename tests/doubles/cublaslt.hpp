// A stand-in for cuBLASLt on host memory: what gemm_cublaslt.cpp calls, with the semantics and the
// conditions of its documentation (CUDA 13). A breach of a condition fails the test that runs.
#pragma once

#include <cublasLt.h>

#include <optional>
#include <set>
#include <string>

#include "base/types.hpp"

namespace kzero::tests {

/// A request to a heuristic.
struct AlgorithmRequest {
  std::uint64_t workspace = 0;
  std::uint32_t reduction_schemes = 0;
  std::uint32_t alignment_a = 0, alignment_b = 0, alignment_c = 0, alignment_d = 0;

  bool operator==(const AlgorithmRequest&) const = default;
};

struct CublasLtDouble {
  Index made = 0;        // handles, descriptors, layouts and preferences so far
  Index alive = 0;       // of them
  Index heuristics = 0;  // calls so far
  Index products = 0;
  AlgorithmRequest request;  // of the last heuristic
  bool has_algorithms = true;
  bool computes = true;  // false: products are checked only, and write nothing
  // Products that heuristics were asked for, and the conditions of the documentation ("Tensor
  // Core Usage") that they break. Kernels for such products are slow.
  std::set<std::string> slow;
  std::optional<cublasStatus_t> next_product_status;  // instead of the product
};

CublasLtDouble& cublaslt();

}  // namespace kzero::tests
