// Instruction sets as oneDNN numbers them. Each family of processors has numbers of its own: the
// one of AVX-512 on x86-64 means SVE of 512 bits on AArch64.
#pragma once

#include <string>

namespace kzero::tensor {

enum class Family { x86_64, aarch64, other };

#if defined(__x86_64__)
inline constexpr Family this_family = Family::x86_64;
#elif defined(__aarch64__)
inline constexpr Family this_family = Family::aarch64;
#else
inline constexpr Family this_family = Family::other;
#endif

/// The number of the set that oneDNN uses on this processor.
unsigned onednn_set();

/// Returns the name of a set, with its number where the set has more than the name says.
std::string name_of_set(unsigned set, Family family = this_family);

/// Whether a set has AVX-512, that with products of bf16, and AMX.
bool has_avx512(unsigned set, Family family = this_family);
bool has_avx512_bf16(unsigned set, Family family = this_family);
bool has_amx(unsigned set, Family family = this_family);

}  // namespace kzero::tensor
