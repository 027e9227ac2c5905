// ThreadSanitizer's accesses are limited to this memory: kernels run on the stack of the host's
// thread, where accesses of several streams mean nothing. Compiled without its instructions.
#include "stream_order/device_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <map>
#include <new>

#include "stream_order/hidden_lock.hpp"

extern "C" {
void __tsan_read_range_pc(void* begin, unsigned long bytes, void* caller);
void __tsan_write_range_pc(void* begin, unsigned long bytes, void* caller);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
}

namespace {

using kzero::stream_order::HiddenLock;

constexpr std::size_t reserved = std::size_t{8} << 30, page = 4096;
constexpr std::size_t header = 128;  // Kokkos' own, in front of the elements

struct Allocation {
  std::size_t bytes = 0;
  std::string label = "memory without a name";
};

struct Memory {
  HiddenLock lock;
  std::size_t taken = 0;
  std::map<std::uintptr_t, Allocation> allocations;
};

Memory& memory() {
  static auto* const memory = new Memory;  // outlives every destructor
  return *memory;
}

std::atomic<std::uintptr_t> range = 0;  // where the addresses begin

bool is_tracked(const void* address) {
  const std::uintptr_t begin = range.load(std::memory_order_relaxed);
  return begin != 0 && reinterpret_cast<std::uintptr_t>(address) - begin < reserved;
}

/// No address is used twice, so nothing is ever said of memory that was given back.
void* take(std::size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  if (range == 0) {
    void* const begin = mmap(nullptr, reserved, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin == MAP_FAILED) return nullptr;
    range = reinterpret_cast<std::uintptr_t>(begin);
  }
  const std::size_t whole = (bytes + page - 1) / page * page;
  if (whole > reserved - m.taken) return nullptr;
  const std::uintptr_t at = range + m.taken;
  m.taken += whole;
  m.allocations[at] = {whole};
  return reinterpret_cast<void*>(at);
}

void give_back(void* data) {
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  const auto found = m.allocations.find(reinterpret_cast<std::uintptr_t>(data));
  if (found == m.allocations.end()) return;
  munmap(data, found->second.bytes);
  m.allocations.erase(found);
}

}  // namespace

// What Kokkos takes host memory with.
void* operator new(std::size_t bytes, std::align_val_t, const std::nothrow_t&) noexcept {
  return take(bytes);
}
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  give_back(data);
}

namespace kzero::stream_order {

void name_memory(const void* begin, const char* label) {
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  const auto found = m.allocations.find(reinterpret_cast<std::uintptr_t>(begin));
  if (found != m.allocations.end()) found->second.label = label;
}

std::string place_of(const void* address) {
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto found = m.allocations.upper_bound(at);
  if (found == m.allocations.begin()) return "memory of the host's own";
  --found;
  return fmt::format("byte {} of {}", at - found->first - header, found->second.label);
}

void reads(const void* begin, std::size_t bytes) {
  if (bytes > 0 && is_tracked(begin))
    __tsan_read_range_pc(const_cast<void*>(begin), bytes, __builtin_return_address(0));
}

void writes(const void* begin, std::size_t bytes) {
  if (bytes > 0 && is_tracked(begin))
    __tsan_write_range_pc(const_cast<void*>(begin), bytes, __builtin_return_address(0));
}

void move_unseen(void* to, const void* from, std::size_t bytes) {
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
  AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  if (bytes > 0) std::memmove(to, from, bytes);
  AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}

}  // namespace kzero::stream_order

// What g++ puts before every access; ThreadSanitizer's library has functions of the same names,
// which these keep other memory from.
#define KZERO_ACCESS(KIND, BYTES)                                                   \
  extern "C" void __tsan_##KIND##BYTES##_pc(void* at, void* caller);                \
  extern "C" void __tsan_##KIND##BYTES(void* at) {                                  \
    if (is_tracked(at)) __tsan_##KIND##BYTES##_pc(at, __builtin_return_address(0)); \
  }
#define KZERO_UNALIGNED_ACCESS(KIND, BYTES)                                               \
  extern "C" void __tsan_unaligned_##KIND##BYTES(void* at) {                              \
    if (is_tracked(at)) __tsan_##KIND##_range_pc(at, BYTES, __builtin_return_address(0)); \
  }
#define KZERO_ACCESSES(KIND)                                                              \
  KZERO_ACCESS(KIND, 1)                                                                   \
  KZERO_ACCESS(KIND, 2)                                                                   \
  KZERO_ACCESS(KIND, 4)                                                                   \
  KZERO_ACCESS(KIND, 8)                                                                   \
  KZERO_ACCESS(KIND, 16)                                                                  \
  KZERO_UNALIGNED_ACCESS(KIND, 2)                                                         \
  KZERO_UNALIGNED_ACCESS(KIND, 4)                                                         \
  KZERO_UNALIGNED_ACCESS(KIND, 8)                                                         \
  KZERO_UNALIGNED_ACCESS(KIND, 16)                                                        \
  extern "C" void __tsan_##KIND##_range(void* at, unsigned long bytes) {                  \
    if (is_tracked(at)) __tsan_##KIND##_range_pc(at, bytes, __builtin_return_address(0)); \
  }
KZERO_ACCESSES(read)
KZERO_ACCESSES(write)
