// The execution space, its memory spaces and its streams. All folders above use this one
// definition.
#pragma once

#include <Kokkos_Core.hpp>
#include <string>

namespace kzero::runtime {

#ifdef KZERO_STREAM_ORDER  // every instance is its own stream: tests/stream_order
using Execution = Kokkos::Serial;
#else
using Execution = Kokkos::DefaultExecutionSpace;
#endif
using Memory = Execution::memory_space;
using HostMemory = Kokkos::SharedHostPinnedSpace;  // pinned: devices can access it too

/// The host's cores in the place of an Execution, for arrays in host memory, whatever the device of
/// the build. A function that takes it returns when its work is done.
struct HostCores {};

/// True if kernels run on the host's own threads.
inline constexpr bool kernels_on_host =
    Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible;

/// True if the host can access the kernels' memory without a copy.
#ifdef KZERO_STAND_IN_DEVICE  // the host acts as a device: tests/support/stand_in_device.cpp
inline constexpr bool on_host = false;
#else
inline constexpr bool on_host = kernels_on_host;
#endif

/// Returns a stream that runs concurrently with the default stream on devices. Hosts have only one
/// stream, since their launches are synchronous.
Execution make_stream();

/// The number of devices that this process sees; 0 if there are none or the back end cannot tell.
int device_count();

/// Directs this thread's calls to the device that the process computes on. Call it first in every
/// thread that uses devices: a CUDA thread starts with the node's first device, and a call would
/// allocate memory there.
void use_device();

/// The kind of device that this process computes on, "NVIDIA H200"; empty on hosts and where the
/// back end cannot tell.
std::string device_kind();

/// The device that this process computes on, by its PCI address: "device 0000:18:00.0". Empty on
/// hosts and where the back end cannot tell.
std::string device_name();

}  // namespace kzero::runtime
