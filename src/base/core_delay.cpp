#include "base/core_delay.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>

namespace kzero {

CoreDelay::CoreDelay() : descriptor_(::open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC)) {}

CoreDelay::~CoreDelay() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

/// The file contains nanoseconds on a core, nanoseconds ready but without a core, and a count.
double CoreDelay::seconds() const {
  std::array<char, 96> text{};
  const auto size = ::pread(descriptor_, text.data(), text.size(), 0);
  if (size <= 0) return 0;
  const char *const begin = text.data(), *const end = begin + size;
  const char* const blank = std::find(begin, end, ' ');
  std::uint64_t nanoseconds = 0;
  if (blank != end) std::from_chars(blank + 1, end, nanoseconds);
  return 1e-9 * static_cast<double>(nanoseconds);
}

}  // namespace kzero
