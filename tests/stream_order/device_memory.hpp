// Memory that Kokkos hands out, the device's and pinned, in one range of addresses.
#pragma once

#include <cstddef>
#include <string>

namespace kzero::stream_order {

/// Takes note of an allocation's label.
void name_memory(const void* begin, const char* label);

/// The byte of an allocation that an address is: "byte 12 of kzero::memory::parameters".
std::string place_of(const void* address);

/// Tells ThreadSanitizer of an access that it does not see, if it is to such memory.
void reads(const void* begin, std::size_t bytes);
void writes(const void* begin, std::size_t bytes);

}  // namespace kzero::stream_order
