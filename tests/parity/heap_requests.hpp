// Records the callers of the C library's allocation functions. heap_requests.cpp replaces these
// functions and includes no Kokkos header, because nvcc treats malloc as a function that devices
// also have.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace kzero::tests {

/// Smaller requests are not recorded.
inline constexpr std::size_t min_bytes = 4096;

void begin_recording();
void end_recording();

/// The requests recorded since begin_recording(), by the first shared object on the stack other
/// than this program and the C and C++ libraries, or "kzero" if there is none.
std::map<std::string, int> requests_by_library();

/// The bytes allocated since begin_recording(), of any size, minus those freed since. The count is
/// exact. The C library's own count treats memory kept for later requests as used.
std::ptrdiff_t bytes_kept();

}  // namespace kzero::tests
