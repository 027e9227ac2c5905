// Copies between the device and pinned host memory. A stream makes them while the host continues.
#pragma once

#include "base/types.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

template <class T>
using DeviceRange = Kokkos::View<T*, Memory, Kokkos::MemoryUnmanaged>;
template <class T>
using PinnedRange = Kokkos::View<T*, HostMemory, Kokkos::MemoryUnmanaged>;

/// Enqueues the copy of `count` elements from pinned host memory to the device's.
template <class T>
void copy_to_device(const Execution& stream, const T* host, T* device, Index count) {
  const auto size = static_cast<std::size_t>(count);
  Kokkos::deep_copy(stream, DeviceRange<T>(device, size), PinnedRange<const T>(host, size));
}

/// Enqueues the copy of `count` elements from the device's memory to pinned host memory.
template <class T>
void copy_to_host(const Execution& stream, const T* device, T* host, Index count) {
  const auto size = static_cast<std::size_t>(count);
  Kokkos::deep_copy(stream, PinnedRange<T>(host, size), DeviceRange<const T>(device, size));
}

}  // namespace kzero::runtime
