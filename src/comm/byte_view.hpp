// Byte views of device memory, for copies between memory spaces.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

template <class Byte>
using ByteView = Kokkos::View<Byte*, runtime::Memory, Kokkos::MemoryUnmanaged>;

inline ByteView<std::byte> bytes_of(const Span& span) {
  return {static_cast<std::byte*>(span.data), static_cast<std::size_t>(span.bytes())};
}
inline ByteView<const std::byte> bytes_of(const ConstSpan& span) {
  return {static_cast<const std::byte*>(span.data), static_cast<std::size_t>(span.bytes())};
}

}  // namespace kzero::comm
