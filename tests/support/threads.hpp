// Execution instances with a set number of threads, to check that results do not depend on it.
#pragma once

#include <vector>

#include "tensor/view.hpp"

namespace kzero::tests {

/// Instances of 1, 2 and 3 threads where the host has threads; elsewhere two equal ones, for repeatability.
inline std::vector<tensor::Execution> thread_counts() {
#ifdef KOKKOS_ENABLE_OPENMP
  if constexpr (std::is_same_v<tensor::Execution, Kokkos::OpenMP>) {
    return {tensor::Execution(1), tensor::Execution(2), tensor::Execution(3)};
  }
#endif
  return {tensor::Execution(), tensor::Execution()};
}

}  // namespace kzero::tests
