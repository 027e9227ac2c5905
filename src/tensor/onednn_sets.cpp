#include "tensor/onednn_sets.hpp"

#include <fmt/format.h>

#include <dnnl.hpp>
#include <span>
#include <utility>

namespace kzero::tensor {

namespace {

using Named = std::pair<unsigned, const char*>;

constexpr unsigned number(dnnl::cpu_isa set) { return static_cast<unsigned>(set); }

/// From large to small: each set contains the next.
std::span<const Named> sets_of(Family family) {
  using Isa = dnnl::cpu_isa;
  static constexpr Named x86_64[] = {{number(Isa::avx512_core_amx), "AMX"},
                                     {number(Isa::avx512_core_bf16), "AVX-512 with bf16"},
                                     {number(Isa::avx512_core_vnni), "AVX-512 with VNNI"},
                                     {number(Isa::avx512_core), "AVX-512"},
                                     {number(Isa::avx2), "AVX2"}};
  // dnnl.hpp has no names for these. The numbers are those of oneDNN 2.6 to 3.7
  // (src/cpu/aarch64/cpu_isa_traits.hpp).
  static constexpr Named aarch64[] = {{0x27, "SVE of 512 bits"}, {0x1f, "SVE of 512 bits"},
                                      {0xf, "SVE of 384 bits"},  {0x7, "SVE of 256 bits"},
                                      {0x3, "SVE of 128 bits"},  {0x1, "NEON"}};
  switch (family) {
    case Family::x86_64:
      return x86_64;
    case Family::aarch64:
      return aarch64;
    case Family::other:
      break;
  }
  return {};
}

bool contains(unsigned set, unsigned other) { return (set & other) == other; }

}  // namespace

unsigned onednn_set() { return number(dnnl::get_effective_cpu_isa()); }

std::string name_of_set(unsigned set, Family family) {
  for (const auto& [named, name] : sets_of(family)) {
    if (named == set) return name;
    // Newer libraries know more sets; each new set contains the earlier ones.
    if (contains(set, named)) return fmt::format("{} and more ({:#x})", name, set);
  }
  return fmt::format("instruction set {:#x}", set);
}

bool has_avx512(unsigned set, Family family) {
  return family == Family::x86_64 && contains(set, number(dnnl::cpu_isa::avx512_core));
}

bool has_avx512_bf16(unsigned set, Family family) {
  return family == Family::x86_64 && contains(set, number(dnnl::cpu_isa::avx512_core_bf16));
}

bool has_amx(unsigned set, Family family) {
  return family == Family::x86_64 && contains(set, number(dnnl::cpu_isa::avx512_core_amx));
}

}  // namespace kzero::tensor
