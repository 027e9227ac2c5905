#include "kernels/host/tiles.hpp"

#include "kernels/host/transpose.hpp"

namespace kzero::kernels::detail {

// Not inlined: each place that loads a tile would have 4 KiB of its code.
[[gnu::noinline]] void pad_tile(const void* from, Index stride, Index rows, Index columns,
                                TileCopy& to) {
  using Element [[gnu::may_alias]] = std::uint32_t;
  const auto* elements = static_cast<const Element*>(from);
  for (Index i = 0; i < tile_side; ++i) {
    for (Index j = 0; j < tile_side; ++j)
      to[i * tile_side + j] = i < rows && j < columns ? elements[i * stride + j] : 0;
  }
}

void gather_rows(const Strided<Bf16Pair>& a, Index rows, Index pairs, Bf16Pair* to,
                 Index to_stride) {
  const bool columns = a.row == 1;
  const Index whole_rows = columns ? rows / tile_side * tile_side : 0;
  const Index whole_pairs = columns ? pairs / tile_side * tile_side : 0;
  transpose(whole_pairs, whole_rows, a.data, a.column, to, to_stride);
  for (Index i = 0; i < rows; ++i) {
    for (Index k = i < whole_rows ? whole_pairs : 0; k < pairs; ++k)
      to[i * to_stride + k] = a.data[i * a.row + k * a.column];
  }
}

}  // namespace kzero::kernels::detail
