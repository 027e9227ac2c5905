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
constexpr Index max_bytes =
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
  ledger->remove(category, bytes);
  if (is_shared) return;
  if (category == Category::offloaded) {
    Kokkos::kokkos_free<HostMemory>(data);
  } else {
    Kokkos::kokkos_free<Memory>(data);
  }
}

Arenas::Arenas(const Arenas& measured, Ledger& ledger, const SharedMemory* shared)
    : ledger_(&ledger), shared_(shared), share_capacity_(measured.shares_) {
  KZERO_REQUIRE((shared_ != nullptr) == (measured.shared_bytes_ > 0), ExitCode::other,
                "internal error: {} of shared memory were planned",
                format_bytes(measured.shared_bytes_));
  for (std::size_t i = 0; i < category_count; ++i) {
    const auto category = static_cast<Category>(i);
    const auto enter = [&](std::byte* data, Index bytes, bool is_shared) {
      ledger.add(category, bytes);
      return Slab(data, Free{&ledger, category, bytes, is_shared});
    };
    const Index share = share_capacity_[i], own = measured.taken_[i] - share;
    capacity_[i] = own;
    if (share > 0) share_entries_[i] = enter(shared_->data(), share, true);
    if (own > 0) slabs_[i] = enter(allocate(category, own), own, false);
  }
}

/// Counts `bytes` in a category, rounded up, and returns them.
Index Arenas::count(Category category, Index bytes) {
  Index& taken = taken_[position(category)];
  KZERO_REQUIRE(
      bytes <= max_bytes - taken, ExitCode::memory,
      "a rank would need more than {} of memory for {}, beyond what can be planned; fewer "
      "layers, a smaller train.micro_batch or model.sequence, or more ranks need less",
      format_bytes(max_bytes), name_of(category));
  const Index rounded = round_up(bytes, alignment);
  taken += rounded;
  return rounded;
}

void Arenas::require_planned(Category category, Index used, Index planned) const {
  KZERO_REQUIRE(measuring() || used <= planned, ExitCode::other,
                "internal error: {} were planned for {}, but {} are used", format_bytes(planned),
                name_of(category), format_bytes(used));
}

void* Arenas::take_bytes(Category category, Index bytes) {
  const std::size_t i = position(category);
  const Index begin = taken_[i] - shares_[i];
  const Index end = begin + count(category, bytes);
  require_planned(category, end, capacity_[i]);
  return measuring() ? nullptr : slabs_[i].get() + begin;
}

void* Arenas::take_shared_bytes(Category category, Index bytes, Index ranks) {
  const std::size_t i = position(category);
  KZERO_REQUIRE(bytes <= (max_bytes - shared_bytes_) / ranks, ExitCode::memory,
                "{} ranks of a node would share more than {} of memory for {}, beyond what can be "
                "planned; a smaller model needs less",
                ranks, format_bytes(max_bytes), name_of(category));
  const Index begin = shared_bytes_, share = count(category, bytes);
  shares_[i] += share;
  shared_bytes_ += ranks * share;
  require_planned(category, shares_[i], share_capacity_[i]);
  return measuring() ? nullptr : shared_->data() + begin;
}

}  // namespace kzero::memory
