// The tile registers of Intel AMX, from Sapphire Rapids on. Assembly is used because GCC 12's
// intrinsics have three faults. They accept a register's number only as text, not as a template
// parameter. They do not declare that they read memory, which may then be written after them. With
// target attributes they are not inlined where the attribute is missing.
#include "base/processor.hpp"
#include "kernels/host/tiles.hpp"

namespace kzero::kernels {

#if defined(__x86_64__)

namespace {

struct AmxTiles {
  static void configure(const TileConfig& config) { asm volatile("ldtilecfg %0" : : "m"(config)); }
  static void release() { asm volatile("tilerelease"); }

  template <int tile>
  static void zero() {
    asm volatile("tilezero %%tmm%c0" : : "i"(tile));
  }
  template <int tile>
  static void load(const void* from, Index row_bytes) {
    asm volatile("tileloadd (%0,%1,1), %%tmm%c2"
                 :
                 : "r"(from), "r"(row_bytes), "i"(tile)
                 : "memory");
  }
  template <int tile>
  static void store(void* to, Index row_bytes) {
    asm volatile("tilestored %%tmm%c2, (%0,%1,1)"
                 :
                 : "r"(to), "r"(row_bytes), "i"(tile)
                 : "memory");
  }
  template <int sum, int a, int b>
  static void add_products() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(sum), "i"(a), "i"(b));
  }
};

}  // namespace

template <>
ProductBackend<Bf16Pair> product_backend() {
  if (!amx_available()) return vector_backend();
  return {&configure_tiles<AmxTiles>, &multiply_in_tiles<AmxTiles>, &AmxTiles::release};
}

#else

template <>
ProductBackend<Bf16Pair> product_backend() {
  return vector_backend();
}

#endif

}  // namespace kzero::kernels
