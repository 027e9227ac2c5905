#include "base/version.hpp"

#include <Kokkos_Core.hpp>

#include "version_info.hpp"

namespace kzero {

std::string version() { return KZERO_VERSION; }
std::string git_hash() { return KZERO_GIT_HASH; }

std::string kernel_arithmetic() {
#if defined(__AVX512F__)
  return std::string(KZERO_COMPILER) + " for AVX-512";
#elif defined(__AVX2__)
  return std::string(KZERO_COMPILER) + " for AVX2";
#elif defined(__ARM_FEATURE_SVE)
  return std::string(KZERO_COMPILER) + " for SVE";
#elif defined(__aarch64__)
  return std::string(KZERO_COMPILER) + " for AArch64";
#elif defined(__x86_64__)
  return std::string(KZERO_COMPILER) + " for x86-64";
#else
  return KZERO_COMPILER;
#endif
}

std::vector<std::pair<std::string, std::string>> build_facts() {
  return {{"kzero", KZERO_VERSION},
          {"git", KZERO_GIT_HASH},
          {"compiler", KZERO_COMPILER},
          {"build", KZERO_BUILD_TYPE},
          {"kokkos", std::to_string(KOKKOS_VERSION / 10000) + "." +
                         std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                         std::to_string(KOKKOS_VERSION % 100)},
          {"execution", Kokkos::DefaultExecutionSpace::name()}};
}

}  // namespace kzero
