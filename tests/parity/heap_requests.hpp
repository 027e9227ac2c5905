// Who asks the C library for memory. heap_requests.cpp, which replaces its functions, sees none of
// Kokkos' headers: nvcc takes malloc for a function that devices have as well.
#pragma once

#include <cstddef>
#include <map>
#include <string>

namespace kzero::tests {

/// Smaller requests are not noted.
inline constexpr std::size_t least_bytes = 4096;

void begin_recording();
void end_recording();

/// Noted requests since begin_recording(), by the first shared object on the stack that is neither
/// this program nor the C or C++ library; "kzero" where there is none.
std::map<std::string, int> requests_by_library();

/// The bytes that were requested since begin_recording(), of any size, less those given back since.
/// Exact, where the C library's own count takes what it keeps for the next request for used.
std::ptrdiff_t bytes_kept();

}  // namespace kzero::tests
