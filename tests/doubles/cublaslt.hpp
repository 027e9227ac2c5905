// A stand-in for cuBLASLt on host memory: what gemm_cublaslt.cpp calls, with the semantics and the
// conditions of its documentation (CUDA 13). A breach of a condition fails the test that runs.
#pragma once

#include <cublasLt.h>

#include <array>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::tests {

/// A request to a heuristic.
struct AlgorithmRequest {
  std::uint64_t workspace = 0;
  std::uint32_t reduction_schemes = 0;
  std::uint32_t alignment_a = 0, alignment_b = 0, alignment_c = 0, alignment_d = 0;

  bool operator==(const AlgorithmRequest&) const = default;
};

/// An algorithm that the library has for any product.
struct LibraryAlgorithm {
  std::array<std::uint32_t, 9> attributes{};  // in the order of their enumerators
  double milliseconds = 0;                    // of a product
  std::uint32_t alignment = 1;                // of the addresses that it accepts
  std::optional<std::size_t> workspace{};     // none: all that a heuristic may use
};

struct CublasLtDouble {
  Index made = 0;        // handles, descriptors, layouts and preferences so far
  Index alive = 0;       // of them
  Index heuristics = 0;  // calls so far
  Index products = 0;
  Index sums = 0;            // of the products, with C added
  AlgorithmRequest request;  // of the last heuristic
  bool has_algorithms = true;
  bool computes = true;  // false: products are checked only, and write nothing
  // Products that heuristics were asked for, and the conditions of the documentation ("Tensor
  // Core Usage") that they break. Kernels for such products are slow.
  std::set<std::string> slow;
  std::optional<cublasStatus_t> next_product_status;  // instead of the product
  // In the order of the heuristic, which leaves out those that need larger alignments. It does not
  // heed the mask of reduction schemes.
  std::vector<LibraryAlgorithm> algorithms{{{7, 1, 1, 0, 0, 0, 1, 0, 0}}};
  std::array<std::uint32_t, 9> computed_with{};  // the attributes of the last product's algorithm
};

CublasLtDouble& cublaslt();

}  // namespace kzero::tests
