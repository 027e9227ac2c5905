// ThreadSanitizer's accesses are limited to this memory: kernels run on the stack of the host's
// thread, where accesses of several streams mean nothing. Compiled without its instructions.
#include "stream_order/device_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <new>

#include "stream_order/hidden_lock.hpp"

extern "C" {
void __tsan_read8_pc(void* at, void* caller);
void __tsan_write8_pc(void* at, void* caller);
}

namespace {

using kzero::stream_order::HiddenLock;

constexpr std::size_t reserved = std::size_t{4} << 30, page = 4096;
constexpr std::size_t header = 128;  // Kokkos' own, in front of the elements

// ThreadSanitizer remembers the last four accesses to eight bytes, which the elements there would
// share. It is told of eight bytes for each 16-bit element instead, at addresses without memory.
constexpr std::size_t element = 2, known_as = 8;

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
std::uintptr_t known = 0;               // where those begin that ThreadSanitizer is told

std::uintptr_t reserve(std::size_t bytes, int access) {
  void* const begin =
      mmap(nullptr, bytes, access, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) throw std::bad_alloc();
  return reinterpret_cast<std::uintptr_t>(begin);
}

/// Calls tell(address) for what ThreadSanitizer knows of these bytes, if they are such memory.
template <class F>
void for_each_known(const void* begin, std::size_t bytes, const F& tell) {
  const std::uintptr_t first = range.load(std::memory_order_relaxed);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(begin) - first;
  if (first == 0 || offset >= reserved) return;
  for (std::size_t i = offset / element; i * element < offset + bytes; ++i)
    tell(reinterpret_cast<void*>(known + i * known_as));
}

/// No address is used twice, so nothing is ever said of memory that was given back.
void* take(std::size_t bytes) {
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  if (range == 0) {
    known = reserve(reserved / element * known_as, PROT_NONE);
    range = reserve(reserved, PROT_READ | PROT_WRITE);
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

// Kokkos allocates host memory with this operator.
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
  auto at = reinterpret_cast<std::uintptr_t>(address);
  if (at - known < reserved / element * known_as) at = range + (at - known) / known_as * element;
  Memory& m = memory();
  const std::lock_guard lock(m.lock);
  auto found = m.allocations.upper_bound(at);
  if (at - range >= reserved || found == m.allocations.begin()) return "the host's own memory";
  --found;
  return fmt::format("byte {} of {}", at - found->first - header, found->second.label);
}

void reads(const void* begin, std::size_t bytes) {
  void* const caller = __builtin_return_address(0);
  for_each_known(begin, bytes, [=](void* at) { __tsan_read8_pc(at, caller); });
}

void writes(const void* begin, std::size_t bytes) {
  void* const caller = __builtin_return_address(0);
  for_each_known(begin, bytes, [=](void* at) { __tsan_write8_pc(at, caller); });
}

}  // namespace kzero::stream_order

// g++ calls these before every access. They come before the functions of ThreadSanitizer's library.
#define KZERO_ACCESS(NAME, KIND, BYTES)                                                \
  extern "C" void __tsan_##NAME(void* at) {                                            \
    void* const caller = __builtin_return_address(0);                                  \
    for_each_known(at, BYTES, [=](void* cell) { __tsan_##KIND##8_pc(cell, caller); }); \
  }
#define KZERO_ACCESSES(KIND)                                                           \
  KZERO_ACCESS(KIND##1, KIND, 1)                                                       \
  KZERO_ACCESS(KIND##2, KIND, 2)                                                       \
  KZERO_ACCESS(KIND##4, KIND, 4)                                                       \
  KZERO_ACCESS(KIND##8, KIND, 8)                                                       \
  KZERO_ACCESS(KIND##16, KIND, 16)                                                     \
  KZERO_ACCESS(unaligned_##KIND##2, KIND, 2)                                           \
  KZERO_ACCESS(unaligned_##KIND##4, KIND, 4)                                           \
  KZERO_ACCESS(unaligned_##KIND##8, KIND, 8)                                           \
  KZERO_ACCESS(unaligned_##KIND##16, KIND, 16)                                         \
  extern "C" void __tsan_##KIND##_range(void* at, unsigned long bytes) {               \
    void* const caller = __builtin_return_address(0);                                  \
    for_each_known(at, bytes, [=](void* cell) { __tsan_##KIND##8_pc(cell, caller); }); \
  }
KZERO_ACCESSES(read)
KZERO_ACCESSES(write)
