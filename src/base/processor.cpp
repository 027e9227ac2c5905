#include "base/processor.hpp"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <string>

#if defined(__x86_64__) && defined(__linux__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace kzero {

namespace {

#if defined(__x86_64__) && defined(__linux__)

/// CPUID leaf 1 tells whether the system has enabled XSAVE, and with it XGETBV. Leaf 7 lists the
/// instructions.
bool processor_has_amx() {
  constexpr unsigned os_xsave = 1U << 27U, amx_bf16 = 1U << 22U, amx_tile = 1U << 24U;
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0 || (c & os_xsave) == 0) return false;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0) return false;
  return (d & amx_bf16) != 0 && (d & amx_tile) != 0;
}

/// Register XCR0 tells whether the system saves tiles and their configuration with each thread.
bool system_saves_tiles() {
  constexpr std::uint32_t tile_config = 1U << 17U, tile_data = 1U << 18U;
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & tile_config) != 0 && (low & tile_data) != 0;
}

/// Linux refuses if a thread's alternate signal stack has no room for the tiles
/// (Documentation/arch/x86/xstate.rst).
bool system_permits_tiles() {
  constexpr long request_permission = 0x1023, tile_data = 18;
  return ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

bool system_has_amx() {
  return processor_has_amx() && system_saves_tiles() && system_permits_tiles();
}

/// Intel's processors have AVX-512 FP16 from Sapphire Rapids on.
bool processor_has_slow_pairs() {
  constexpr unsigned fp16 = 1U << 23U;
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(0, &a, &b, &c, &d) != 0 && b == signature_INTEL_ebx &&
         __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d & fp16) != 0;
}

#else

bool processor_has_slow_pairs() { return false; }

bool system_has_amx() { return false; }

#endif

/// oneDNN 3 reads the first of these variables that is set; oneDNN 2 reads only the second.
std::string_view isa_limit() {
  for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) {
    if (const char* value = std::getenv(name)) return value;
  }
  return {};
}

}  // namespace

bool isa_limit_leaves_amx(std::string_view limit) {
  std::string upper(limit);
  std::ranges::transform(upper, upper.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper.empty() || upper == "ALL" || upper == "DEFAULT" ||
         upper.find("AMX") != std::string::npos;
}

bool amx_available() {
  static const bool available = isa_limit_leaves_amx(isa_limit()) && system_has_amx();
  return available;
}

bool pairs_are_slow() {
  static const bool slow = processor_has_slow_pairs();
  return slow;
}

}  // namespace kzero
