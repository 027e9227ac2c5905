#include "runtime/view_layout.hpp"

#include <array>
#include <cstdint>

#include "base/error.hpp"
#include "base/types.hpp"
#include "runtime/execution.hpp"

namespace kzero::runtime {

namespace {

template <class T>
using Unmanaged = Kokkos::View<T, Kokkos::LayoutRight, Memory, Kokkos::MemoryUnmanaged>;

/// The addresses and extents that code finds in a vector and a matrix.
struct Seen {
  std::array<std::uintptr_t, 2> data;
  std::array<std::size_t, 3> extents;

  bool operator==(const Seen&) const = default;
};

KOKKOS_INLINE_FUNCTION Seen look_at(const Unmanaged<float*>& vector,
                                    const Unmanaged<float**>& matrix) {
  return {{reinterpret_cast<std::uintptr_t>(vector.data()),
           reinterpret_cast<std::uintptr_t>(matrix.data())},
          {vector.extent(0), matrix.extent(0), matrix.extent(1)}};
}

}  // namespace

void require_equal_views() {
  if constexpr (kernels_on_host) return;
  const Kokkos::View<Seen, HostMemory> result("kzero::runtime::seen");
  Seen* const seen = result.data();
  // Nobody reads these elements, so any memory and any extents do.
  float* const elements = reinterpret_cast<float*>(seen);
  const Unmanaged<float*> vector(elements + 1, 3);
  const Unmanaged<float**> matrix(elements + 2, 5, 7);
  Kokkos::parallel_for(
      "kzero::runtime::look_at_views",
      Kokkos::RangePolicy<Execution, Kokkos::IndexType<Index>>(0, 1),
      KOKKOS_LAMBDA(Index) { *seen = look_at(vector, matrix); });
  Kokkos::fence("kzero::runtime::look_at_views");
  KZERO_REQUIRE(*seen == look_at(vector, matrix), ExitCode::other,
                "kernels of this build do not find the extents of Kokkos' views where the host "
                "stores them; build with Kokkos 4.7.2 or newer, or with CUDA before 12.9");
}

}  // namespace kzero::runtime
