#include "base/version.hpp"

#include <Kokkos_Core.hpp>
#include <type_traits>

#include "base/processor.hpp"
#include "version_info.hpp"

namespace kzero {

namespace {

constexpr bool kernels_run_on_host =
    std::is_same_v<Kokkos::DefaultExecutionSpace, Kokkos::DefaultHostExecutionSpace>;

}  // namespace

std::string version() { return KZERO_VERSION; }
std::string git_hash() { return KZERO_GIT_HASH; }

std::string kernel_arithmetic() {
#if defined(__AVX512BF16__)
  const char* const instructions = " for AVX-512 with bf16";
#elif defined(__AVX512F__)
  const char* const instructions = " for AVX-512";
#elif defined(__AVX2__)
  const char* const instructions = " for AVX2";
#elif defined(__ARM_FEATURE_SVE)
  const char* const instructions = " for SVE";
#elif defined(__aarch64__)
  const char* const instructions = " for AArch64";
#elif defined(__x86_64__)
  const char* const instructions = " for x86-64";
#else
  const char* const instructions = "";
#endif
  return std::string(KZERO_COMPILER) + instructions +
         (kernels_run_on_host && amx_available() ? " and AMX" : "");
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
