// Code that the fuzz targets share. A user's Error is a good answer to any bytes; anything else
// (another exception, an internal error, a report of a sanitizer) stops the fuzzer.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "base/error.hpp"

namespace kzero::fuzz {

/// Stops the fuzzer with what should be true and is not.
inline void require(bool condition, const char* text) {
  if (condition) return;
  std::fprintf(stderr, "not so: %s\n", text);
  std::abort();
}

/// Calls f; false if it refused with an Error.
template <class F>
bool accepts(F&& f) {
  try {
    f();
    return true;
  } catch (const Error& error) {
    require(error.code() == ExitCode::usage || error.code() == ExitCode::files, error.what());
    return false;
  }
}

/// A file in memory for readers that take a path.
class MemoryFile {
 public:
  MemoryFile() : id_(memfd_create("fuzz", MFD_CLOEXEC)) { require(id_ >= 0, "memory for a file"); }
  ~MemoryFile() { ::close(id_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(id_); }

  void store(const std::uint8_t* data, std::size_t size) const {
    const bool stored =
        ::ftruncate(id_, 0) == 0 && ::pwrite(id_, data, size, 0) == static_cast<ssize_t>(size);
    require(stored, "the memory file takes its bytes");
  }

 private:
  int id_;
};

}  // namespace kzero::fuzz
