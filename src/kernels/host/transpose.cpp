#include "kernels/host/transpose.hpp"

#include <cstddef>
#include <utility>

namespace kzero::kernels {

namespace {

using AllLanes = std::make_index_sequence<host_lanes>;

/// Exchanges the off-diagonal parts of two rows, `half` lanes wide. This is the rows' part of a
/// transpose of two-by-two blocks.
template <std::size_t half, std::size_t... lane>
void exchange(HostVector& a, HostVector& b, std::index_sequence<lane...>) {
  constexpr std::size_t second = host_lanes;  // lanes of b follow those of a
  const HostVector upper =
      __builtin_shufflevector(a, b, ((lane & half) != 0 ? second + lane - half : lane)...);
  b = __builtin_shufflevector(a, b, ((lane & half) != 0 ? second + lane : lane + half)...);
  a = upper;
}

template <std::size_t half>
void exchange_all(HostVector (&rows)[host_lanes]) {
  for (std::size_t i = 0; i < host_lanes; ++i) {
    if ((i & half) == 0) exchange<half>(rows[i], rows[i + half], AllLanes());
  }
  if constexpr (half > 1) exchange_all<half / 2>(rows);
}

}  // namespace

void transpose(Index rows, Index columns, const float* from, Index from_stride, float* to,
               Index to_stride) {
  for (Index i = 0; i < rows; i += host_lanes) {
    for (Index j = 0; j < columns; j += host_lanes) {
      HostVector block[host_lanes];
      for (Index r = 0; r < host_lanes; ++r)
        block[r] = load_vector(from + (i + r) * from_stride + j);
      exchange_all<host_lanes / 2>(block);
      for (Index r = 0; r < host_lanes; ++r) store_vector(to + (j + r) * to_stride + i, block[r]);
    }
  }
}

}  // namespace kzero::kernels
