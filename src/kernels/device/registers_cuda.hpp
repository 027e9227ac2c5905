// What nvcc keeps in registers. Compilers for other devices and for hosts need no such hint.
#pragma once

#include <Kokkos_Macros.hpp>
#include <cstdint>

namespace kzero::kernels {

/// Makes the compiler forget what it derived from a word, so that it derives it again.
KOKKOS_INLINE_FUNCTION void forget_derived(std::uint32_t& word) {
#ifdef __CUDA_ARCH__
  asm volatile("" : "+r"(word));
#else
  (void)word;
#endif
}

}  // namespace kzero::kernels
