#include "memory/arenas.hpp"

#include <sys/mman.h>

#include <Kokkos_Core.hpp>
#include <string>

#include "base/bytes.hpp"

namespace kzero::memory {

namespace {

using Memory = Kokkos::DefaultExecutionSpace::memory_space;
using HostMemory = Kokkos::SharedHostPinnedSpace;  // pinned: devices can access it too

constexpr Index alignment = 64;
constexpr Index huge_page = Index{2} << 20;
constexpr Index most_bytes =
    Index{1} << 58;  // per category, so that the sum of all categories stays in range

std::byte* allocate(Category category, Index bytes) {
  const std::string label = "kzero::memory::" + std::string(name_of(category));
  const auto size = static_cast<std::size_t>(bytes);
  void* data = nullptr;
  try {
    data = category == Category::offloaded ? Kokkos::kokkos_malloc<HostMemory>(label, size)
                                           : Kokkos::kokkos_malloc<Memory>(label, size);
  } catch (const std::exception&) {
    fail(ExitCode::memory,
         "cannot allocate {} of memory for {}; `kzero plan` shows what a rank needs",
         format_bytes(bytes), name_of(category));
  }
  if constexpr (Kokkos::SpaceAccessibility<Kokkos::HostSpace, Memory>::accessible) {
    // Huge pages reduce the cost of first touch and of TLB misses; a refusal only costs speed.
    const auto address = reinterpret_cast<std::intptr_t>(data);
    const Index skipped = round_up(address, huge_page) - address;
    const Index advised = (bytes - skipped) / huge_page * huge_page;
    if (advised > 0) madvise(static_cast<std::byte*>(data) + skipped, advised, MADV_HUGEPAGE);
  }
  return static_cast<std::byte*>(data);
}

}  // namespace

void Arenas::Free::operator()(std::byte* data) const {
  if (category == Category::offloaded) {
    Kokkos::kokkos_free<HostMemory>(data);
  } else {
    Kokkos::kokkos_free<Memory>(data);
  }
  ledger->remove(category, bytes);
}

Arenas::Arenas(const Arenas& measured, Ledger& ledger)
    : ledger_(&ledger), capacity_(measured.taken_) {
  for (std::size_t i = 0; i < category_count; ++i) {
    if (capacity_[i] == 0) continue;
    const auto category = static_cast<Category>(i);
    std::byte* data = allocate(category, capacity_[i]);
    ledger.add(category, capacity_[i]);
    slabs_[i] = {data, Free{&ledger, category, capacity_[i]}};
  }
}

void* Arenas::take_bytes(Category category, Index bytes) {
  Index& taken = taken_[position(category)];
  const Index begin = taken;
  KZERO_REQUIRE(
      bytes <= most_bytes - taken, ExitCode::memory,
      "a rank would need more than {} of memory for {}, beyond what can be planned; fewer "
      "layers, a smaller train.micro_batch or model.sequence, or more ranks need less",
      format_bytes(most_bytes), name_of(category));
  taken += round_up(bytes, alignment);
  if (measuring()) return nullptr;
  KZERO_REQUIRE(taken <= capacity_[position(category)], ExitCode::other,
                "internal error: {} were planned for {}, but {} are used",
                format_bytes(capacity_[position(category)]), name_of(category),
                format_bytes(taken));
  return slabs_[position(category)].get() + begin;
}

}  // namespace kzero::memory
