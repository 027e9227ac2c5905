// The teams of threads that run kernels, in Kokkos' terms. A team's threads have vector lanes,
// which are a warp's lanes on GPUs. Kernels name only these types, so that a test build can replace
// this header with its own teams (tests/races).
#pragma once

#include "tensor/view.hpp"

namespace kzero::kernels {

using Policy = Kokkos::TeamPolicy<tensor::Execution>;
using Team = Policy::member_type;

/// A policy for functors of up to 4 KiB that hold a table (launch_table.hpp). Kokkos passes them as
/// arguments of the launch. Others of more than 512 bytes it copies to constant memory, where a
/// launch waits for the one before.
using TablePolicy = Kokkos::TeamPolicy<tensor::Execution,
                                       Kokkos::Experimental::WorkItemProperty::HintLightWeight_t>;

/// A policy that limits registers, so that `teams` teams of `threads` threads, lanes included, fit
/// on a multiprocessor at once.
template <int threads, int teams>
using BoundedPolicy = Kokkos::TeamPolicy<tensor::Execution, Kokkos::LaunchBounds<threads, teams>>;

/// Threads per team, for kernels that set the number. One on hosts.
constexpr int team_size(int on_device) { return runtime::kernels_on_host ? 1 : on_device; }

/// Vector lanes per thread, for kernels that set the number. One on hosts.
constexpr int vector_length(int on_device) { return runtime::kernels_on_host ? 1 : on_device; }

}  // namespace kzero::kernels
