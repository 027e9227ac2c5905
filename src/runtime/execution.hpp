// Where kernels run and on which streams: the one definition that everything above shares.
#pragma once

#include <Kokkos_Core.hpp>

namespace kzero::runtime {

using Execution = Kokkos::DefaultExecutionSpace;
using Memory = Execution::memory_space;
using HostMemory = Kokkos::SharedHostPinnedSpace;  // which a device reads and writes as well

/// Whether kernels run on the host's own threads.
inline constexpr bool kernels_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;

/// Whether the host reaches what kernels work on without a copy.
#ifdef KZERO_STAND_IN_DEVICE  // the host plays a device: tests/support/stand_in_device.cpp
inline constexpr bool on_host = false;
#else
inline constexpr bool on_host = kernels_on_host;
#endif

/// A stream beside the default one, whose work goes on at the same time: a stream of its own on
/// devices; hosts, which finish work before they enqueue more, have just the one.
Execution make_stream();

/// Devices that this process sees; 0 where there are none or nobody knows.
int device_count();

}  // namespace kzero::runtime
