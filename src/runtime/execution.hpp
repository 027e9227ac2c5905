// The execution space, its memory spaces and its streams: the one definition that all folders above
// share.
#pragma once

#include <Kokkos_Core.hpp>
#include <string>

namespace kzero::runtime {

#ifdef KZERO_STREAM_ORDER  // every instance is a stream of its own: tests/stream_order
using Execution = Kokkos::Serial;
#else
using Execution = Kokkos::DefaultExecutionSpace;
#endif
using Memory = Execution::memory_space;
using HostMemory = Kokkos::SharedHostPinnedSpace;  // pinned: devices can access it too

/// True if kernels run on the host's own threads.
inline constexpr bool kernels_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;

/// True if the host can access the kernels' memory without a copy.
#ifdef KZERO_STAND_IN_DEVICE  // the host plays a device: tests/support/stand_in_device.cpp
inline constexpr bool on_host = false;
#else
inline constexpr bool on_host = kernels_on_host;
#endif

/// Returns a stream that runs concurrently with the default one on devices; hosts, where launches
/// are synchronous, have only one.
Execution make_stream();

/// The number of devices that this process sees; 0 if there are none or the backend cannot say.
int device_count();

/// Makes this thread's calls go to the device that the process computes on. To be called first in
/// every thread that touches devices: one of CUDA begins with the node's first device, and a call
/// would take memory there.
void use_device();

/// The kind of device that this process computes on, "NVIDIA H200"; empty on hosts and where the
/// backend cannot say.
std::string device_kind();

}  // namespace kzero::runtime
