// Makes a host build's device memory inaccessible to the host, as on a device. Preloaded into a
// test and loaded by Kokkos as its tool. Memory that Kokkos allocates for the device is accessible
// only while Kokkos runs a kernel or copies. Any other access ends the program with a message and a
// stack trace.
//
// If the processor has protection keys, a thread opens and closes all of this memory by writing a
// register. Without them, page tables change around every kernel, which takes about as long as the
// tests themselves. Page tables are also used if kernels begin with several threads, because each
// thread has its own register.
#include <execinfo.h>
#include <omp.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <impl/Kokkos_Profiling_C_Interface.h>

namespace {

constexpr std::size_t page = std::size_t{2} << 20;  // a huge page, changed by a single entry
constexpr std::size_t header = 128;                 // Kokkos' header in front of the elements
constexpr std::size_t max_kept = 64;                // ranges

struct Range {
  std::byte* begin;
  std::size_t bytes;
};

struct State {
  std::recursive_mutex mutex;
  std::map<void*, Range> mapped;         // by the pointer that operator new returned
  std::map<void*, std::string> devices;  // labels of the device's allocations
  std::vector<std::byte*> kept;          // freed ranges of two pages, which nobody can access
  bool has_chosen = false;
  int key = -1;  // protection key; negative: page tables are used
  int open = 0;  // active kernels and copies, without a key
};

thread_local int open_here = 0;  // this thread's active kernels and copies, with keys

State& state() {
  static auto* const state = new State;  // outlives every destructor
  return *state;
}

bool is_of_device(const std::string& label) {
  return label.starts_with("kzero::") && label.find("host") == std::string::npos &&
         !label.ends_with("offloaded");
}

/// The pages of the elements, without the header.
Range elements(const Range& range) { return {range.begin + page, range.bytes - page}; }

void allow(const Range& range, int access) { mprotect(range.begin, range.bytes, access); }

void open() {
  State& s = state();
  if (s.key >= 0) {
    if (open_here++ == 0) pkey_set(s.key, 0);
    return;
  }
  const std::lock_guard lock(s.mutex);
  if (s.open++ > 0) return;
  for (const auto& [data, label] : s.devices)
    allow(elements(s.mapped.at(data)), PROT_READ | PROT_WRITE);
}

void close() {
  State& s = state();
  if (s.key >= 0) {
    if (--open_here == 0) pkey_set(s.key, PKEY_DISABLE_ACCESS);
    return;
  }
  const std::lock_guard lock(s.mutex);
  if (--s.open > 0) return;
  for (const auto& [data, label] : s.devices) allow(elements(s.mapped.at(data)), PROT_NONE);
}

/// Makes memory inaccessible to the host.
void withdraw(const Range& range) {
  State& s = state();
  if (!s.has_chosen && s.open == 0 && omp_get_max_threads() == 1)
    s.key = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  s.has_chosen = true;
  if (s.key >= 0) {
    pkey_mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE, s.key);
  } else if (s.open == 0) {
    allow(range, PROT_NONE);
  }
}

void report(int signal, siginfo_t* info, void*) {
  const auto* const at = static_cast<const std::byte*>(info->si_addr);
  for (const auto& [data, label] : state().devices) {
    const Range range = elements(state().mapped.at(data));
    if (at < range.begin || at >= range.begin + range.bytes) continue;
    std::fprintf(stderr, "the host touched the device's memory: byte %td of %s\n", at - range.begin,
                 label.c_str());
    void* frames[32];
    backtrace_symbols_fd(frames, backtrace(frames, 32), STDERR_FILENO);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

std::byte* map_new(std::size_t whole) {
  void* const found =
      mmap(nullptr, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return nullptr;
  auto* const at = static_cast<std::byte*>(found);
  auto* const begin = at + (page - reinterpret_cast<std::uintptr_t>(at) % page) % page;
  if (begin > at) munmap(at, begin - at);
  if (begin < at + page) munmap(begin + whole, at + page - begin);
  madvise(begin + page, whole - page, MADV_HUGEPAGE);
  return begin;
}

/// Returns a freed range to which the host has access again, or nullptr if none is kept.
std::byte* map_again() {
  State& s = state();
  if (s.kept.empty()) return nullptr;
  std::byte* const begin = s.kept.back();
  s.kept.pop_back();
  pkey_mprotect(begin, 2 * page, PROT_READ | PROT_WRITE, s.key >= 0 ? 0 : -1);
  return begin;
}

/// The elements begin on their own page, after Kokkos' header. Small ranges are used again, because
/// the system spends longer on clearing a huge page than a test on using it.
void* map(std::size_t bytes) {
  const std::size_t whole = page + (bytes + page - 1) / page * page;
  const std::lock_guard lock(state().mutex);
  std::byte* begin = whole == 2 * page ? map_again() : nullptr;
  if (!begin) begin = map_new(whole);
  if (!begin) return nullptr;
  void* const data = begin + page - header;
  state().mapped[data] = {begin, whole};
  return data;
}

/// An access to freed memory ends the program, whoever makes it.
void unmap(void* data) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto found = s.mapped.find(data);
  if (found == s.mapped.end()) return;
  const Range range = found->second;
  s.mapped.erase(found);
  if (range.bytes == 2 * page && s.kept.size() < max_kept) {
    allow(range, PROT_NONE);
    s.kept.push_back(range.begin);
  } else {
    munmap(range.begin, range.bytes);
  }
}

}  // namespace

// Kokkos allocates host memory with this operator. kzero's own alignments are smaller than a
// header.
void* operator new(std::size_t bytes, std::align_val_t, const std::nothrow_t&) noexcept {
  return map(bytes);
}
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept { unmap(data); }

extern "C" {

void kokkosp_init_library(int, std::uint64_t, std::uint32_t, void*) {
  struct sigaction action {};
  action.sa_sigaction = report;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, nullptr);
}

void kokkosp_allocate_data(Kokkos_Profiling_SpaceHandle, const char* label, const void* data,
                           std::uint64_t) {
  if (!is_of_device(label)) return;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.mapped.contains(const_cast<void*>(data))) {
    std::fprintf(stderr, "%s was not taken as this tool expects it of Kokkos\n", label);
    std::abort();
  }
  s.devices[const_cast<void*>(data)] = label;
  withdraw(elements(s.mapped.at(const_cast<void*>(data))));
}

void kokkosp_deallocate_data(Kokkos_Profiling_SpaceHandle, const char*, const void* data,
                             std::uint64_t) {
  const std::lock_guard lock(state().mutex);
  state().devices.erase(const_cast<void*>(data));
}

void kokkosp_begin_parallel_for(const char*, std::uint32_t, std::uint64_t*) { open(); }
void kokkosp_end_parallel_for(std::uint64_t) { close(); }
void kokkosp_begin_parallel_reduce(const char*, std::uint32_t, std::uint64_t*) { open(); }
void kokkosp_end_parallel_reduce(std::uint64_t) { close(); }
void kokkosp_begin_parallel_scan(const char*, std::uint32_t, std::uint64_t*) { open(); }
void kokkosp_end_parallel_scan(std::uint64_t) { close(); }

void kokkosp_begin_deep_copy(Kokkos_Profiling_SpaceHandle, const char*, const void*,
                             Kokkos_Profiling_SpaceHandle, const char*, const void*,
                             std::uint64_t) {
  open();
}
void kokkosp_end_deep_copy() { close(); }

}  // extern "C"
