// Elements that a thread moves at once: 16 bytes are what a device's memory takes in one access.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>

namespace kzero::kernels {

/// `count` neighbouring elements, whose first lies at a multiple of their size or of 16 bytes.
template <class T, int count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  T values[count];

  KOKKOS_INLINE_FUNCTION static Pack& at(T* data) { return *reinterpret_cast<Pack*>(data); }
  KOKKOS_INLINE_FUNCTION static const Pack& at(const T* data) {
    return *reinterpret_cast<const Pack*>(data);
  }
};

/// Whether packs of at least 16 bytes may begin at all of these.
template <class... T>
KOKKOS_INLINE_FUNCTION bool begin_packs(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % 16 == 0) && ...);
}

}  // namespace kzero::kernels
