// The teams of threads that kernels run on, in Kokkos' terms: a team's threads have vector lanes,
// which are a warp's on GPUs. Kernels name these types only, so that a test build can put teams of
// its own in place of this header (tests/races).
#pragma once

#include "tensor/view.hpp"

namespace kzero::kernels {

using Policy = Kokkos::TeamPolicy<tensor::Execution>;
using Team = Policy::member_type;

/// A policy whose kernel has few enough registers for `teams` teams of `threads` threads, lanes
/// included, at once on a multiprocessor.
template <int threads, int teams>
using BoundedPolicy = Kokkos::TeamPolicy<tensor::Execution, Kokkos::LaunchBounds<threads, teams>>;

/// Threads of a team, for kernels that set the number: one on hosts.
constexpr int team_size(int on_device) { return runtime::kernels_on_host ? 1 : on_device; }

/// Vector lanes of a thread, for kernels that set the number: one on hosts.
constexpr int vector_length(int on_device) { return runtime::kernels_on_host ? 1 : on_device; }

}  // namespace kzero::kernels
