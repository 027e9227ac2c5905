// Execution instances with a fixed number of threads, to check that results do not depend on it.
#pragma once

#include <type_traits>
#include <vector>

#include "tensor/view.hpp"

namespace kzero::tests {

/// Instances with 1, 2 and 3 threads if `Space` has host threads. Otherwise two equal instances, to
/// check repeatability. ThreadSanitizer builds also use two because it does not see how OpenMP's
/// threads wait.
template <class Space = tensor::Execution>
std::vector<Space> thread_counts() {
#if defined(KOKKOS_ENABLE_OPENMP) && !defined(__SANITIZE_THREAD__)
  if constexpr (std::is_same_v<Space, Kokkos::OpenMP>) return {Space(1), Space(2), Space(3)};
#endif
  return {Space(), Space()};
}

}  // namespace kzero::tests
