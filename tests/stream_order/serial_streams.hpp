// Included before every source of a build in which streams are ThreadSanitizer's fibers. Kokkos
// gives all instances of its Serial back end one number, and tells its tools of no copy on which
// stream it is; here both have their stream.
#pragma once

#include <Kokkos_Core.hpp>

namespace kzero::stream_order {

/// The number of the stream behind an instance, from 0.
std::uint32_t number_of(const Kokkos::Serial& stream) noexcept;

/// Copies bytes on a stream.
void copy(const Kokkos::Serial& stream, void* to, const void* from, std::size_t bytes);

}  // namespace kzero::stream_order

template <>
inline std::uint32_t Kokkos::Tools::Experimental::device_id<Kokkos::Serial>(
    const Kokkos::Serial& stream) noexcept {
  return device_id_root<Kokkos::Serial>() + kzero::stream_order::number_of(stream);
}

template <>
struct Kokkos::Impl::DeepCopy<Kokkos::HostSpace, Kokkos::HostSpace, Kokkos::Serial, void> {
  DeepCopy(const Kokkos::Serial& stream, void* to, const void* from, std::size_t bytes) {
    kzero::stream_order::copy(stream, to, from, bytes);
  }
};
