#include "runtime/build_facts.hpp"

#include "base/processor.hpp"
#include "base/version.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

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
  return compiler() + instructions + (kernels_on_host && amx_available() ? " and AMX" : "");
}

std::vector<std::pair<std::string, std::string>> build_facts() {
  return {{"kzero", version()},
          {"git", git_hash()},
          {"compiler", compiler()},
          {"build", build_type()},
          {"kokkos", std::to_string(KOKKOS_VERSION / 10000) + "." +
                         std::to_string(KOKKOS_VERSION / 100 % 100) + "." +
                         std::to_string(KOKKOS_VERSION % 100)},
          {"execution", Execution::name()}};
}

}  // namespace kzero::runtime
