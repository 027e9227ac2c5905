#include "parity/heap_requests.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
void __libc_free(void*);
}

namespace kzero::tests {

namespace {

constexpr int max_recorded = 4096;
constexpr int depth = 12;

struct Request {
  int frames;
  void* frame[depth];
};

std::atomic<bool> recording{false};
std::atomic<int> requests{0};
std::atomic<std::ptrdiff_t> kept{0};
Request recorded[max_recorded];
thread_local bool inside = false;

/// Records the caller without allocating.
void note(std::size_t bytes) {
  if (bytes < min_bytes || inside || !recording) return;
  inside = true;
  const int at = requests++;
  if (at < max_recorded) recorded[at].frames = backtrace(recorded[at].frame, depth);
  inside = false;
}

void* count(void* data) {
  if (recording) kept += static_cast<std::ptrdiff_t>(malloc_usable_size(data));
  return data;
}
void uncount(void* data) {
  if (recording) kept -= static_cast<std::ptrdiff_t>(malloc_usable_size(data));
}

std::string library_of(const Request& request) {
  for (int i = 0; i < request.frames; ++i) {
    Dl_info info{};
    if (dladdr(request.frame[i], &info) == 0 || info.dli_fname == nullptr) continue;
    const std::string name = std::filesystem::path(info.dli_fname).filename().string();
    const bool is_plain = name.starts_with("libc.") || name.starts_with("libstdc++");
    if (!is_plain && name.find("test_parity") == std::string::npos) return name;
  }
  return "kzero";
}

}  // namespace

void begin_recording() {
  void* first[1];
  backtrace(first, 1);  // loads a library on its first call
  requests = 0;
  kept = 0;
  recording = true;
}

void end_recording() { recording = false; }

std::map<std::string, int> requests_by_library() {
  std::map<std::string, int> counts;
  for (int i = 0; i < std::min<int>(requests, max_recorded); ++i) ++counts[library_of(recorded[i])];
  return counts;
}

std::ptrdiff_t bytes_kept() { return kept; }

extern "C" {
void* malloc(std::size_t bytes) noexcept {
  note(bytes);
  return count(__libc_malloc(bytes));
}
void* calloc(std::size_t elements, std::size_t bytes) noexcept {
  note(elements * bytes);
  return count(__libc_calloc(elements, bytes));
}
void* realloc(void* data, std::size_t bytes) noexcept {
  note(bytes);
  uncount(data);
  return count(__libc_realloc(data, bytes));
}
void free(void* data) noexcept {
  uncount(data);
  __libc_free(data);
}
void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  return count(__libc_memalign(alignment, bytes));
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  return count(__libc_memalign(alignment, bytes));
}
int posix_memalign(void** data, std::size_t alignment, std::size_t bytes) noexcept {
  note(bytes);
  *data = count(__libc_memalign(alignment, bytes));
  return *data ? 0 : ENOMEM;
}
}

}  // namespace kzero::tests
