// Packs of elements that a thread moves at once: 16 bytes, the size of one access to device memory.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>

namespace kzero::kernels {

/// A pack of `count` neighbouring elements, aligned to their size or to 16 bytes.
template <class T, int count>
struct alignas(count * sizeof(T) < 16 ? count * sizeof(T) : 16) Pack {
  T values[count];

  KOKKOS_INLINE_FUNCTION static Pack& at(T* data) { return *reinterpret_cast<Pack*>(data); }
  KOKKOS_INLINE_FUNCTION static const Pack& at(const T* data) {
    return *reinterpret_cast<const Pack*>(data);
  }
};

/// True if a full pack is moved at once at `data`. Hosts move single elements, which their
/// compilers vectorize: gcc 12 would merge both branches into the access that needs the alignment.
template <int count, class T>
KOKKOS_INLINE_FUNCTION bool moves_whole(const T* data) {
  KOKKOS_IF_ON_DEVICE(
      (return reinterpret_cast<std::uintptr_t>(data) % alignof(Pack<T, count>) == 0;))
  KOKKOS_IF_ON_HOST(((void)data; return false;))
}

/// Loads the pack at `data`, element by element if it is not aligned. An array's address therefore
/// does not affect which thread reads which elements of a sum, nor the sum's bits.
template <int count, class T>
KOKKOS_INLINE_FUNCTION Pack<T, count> read_pack(const T* data) {
  using Whole = Pack<T, count>;
  if (moves_whole<count>(data)) return Whole::at(data);
  Whole pack;
  for (int e = 0; e < count; ++e) pack.values[e] = data[e];
  return pack;
}

template <int count, class T>
KOKKOS_INLINE_FUNCTION void write_pack(T* data, const Pack<T, count>& pack) {
  using Whole = Pack<T, count>;
  if (moves_whole<count>(data)) {
    Whole::at(data) = pack;
  } else {
    for (int e = 0; e < count; ++e) data[e] = pack.values[e];
  }
}

/// True if packs of at least 16 bytes may begin at all of these addresses.
template <class... T>
KOKKOS_INLINE_FUNCTION bool begin_packs(const T*... data) {
  return ((reinterpret_cast<std::uintptr_t>(data) % 16 == 0) && ...);
}

}  // namespace kzero::kernels
