// Products of bf16 pairs in tile registers. There are eight registers of up to 16 rows of 64 bytes,
// which a thread configures before use (Intel 64 and IA-32 Architectures Software Developer's
// Manual, volume 1, chapter "Programming with Intel AMX"). B's pairs are grouped as in pairs.hpp.
//
// The registers are a policy, Tiles. tiles_amx.cpp has the processor's; tests have others.
//   configure(TileConfig), release()
//   zero<tile>(), load<tile>(from, bytes from row to row), store<tile>(to, bytes from row to row)
//   add_products<sum, a, b>(): sum[i,j] += over pairs k and both their terms, a[i,k] * b[k,j]
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/host/product.hpp"

namespace kzero::kernels {

/// Rows of a tile, and 32-bit elements per row: floats of C, or pairs of A and B.
inline constexpr Index tile_side = 16;

/// The shapes of all tiles in the format of the instruction LDTILECFG, for the only palette.
struct TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};
static_assert(sizeof(TileConfig) == 64);

/// Configures the thread's tiles. All tiles always have full size. Partial tiles are padded with
/// zeros in memory, because loading a configuration takes as long as many products.
template <class Tiles>
void configure_tiles() {
  TileConfig config;
  std::fill_n(config.row_bytes, 8, std::uint16_t{tile_side * 4});
  std::fill_n(config.rows, 8, std::uint8_t{tile_side});
  Tiles::configure(config);
}

namespace detail {

using TileCopy = std::uint32_t[tile_side * tile_side];

/// A tile's first element in memory, and the bytes from row to row.
struct TileMemory {
  const void* data;
  Index row_bytes;
};

/// Copies `rows` x `columns` elements of 32 bits, with rows `stride` apart, and pads them with
/// zeros to a full tile. Either count may exceed a tile's.
void pad_tile(const void* from, Index stride, Index rows, Index columns, TileCopy& to);

/// Returns where to load such a tile: in place if it is full, else in `copy`.
inline TileMemory whole_tile(const void* from, Index stride, Index rows, Index columns,
                             TileCopy& copy) {
  if (rows >= tile_side && columns >= tile_side) return {from, stride * 4};
  pad_tile(from, stride, rows, columns, copy);
  return {copy, tile_side * 4};
}

/// Copies rows of A whose pairs are not contiguous to rows of contiguous pairs.
void gather_rows(const Strided<Bf16Pair>& a, Index rows, Index pairs, Bf16Pair* to,
                 Index to_stride);

/// Calls f(std::integral_constant) for 0 to count - 1.
template <int count, class F>
void for_each_tile(const F& f) {
  [&]<int... tile>(std::integer_sequence<int, tile...>) {
    (f(std::integral_constant<int, tile>()), ...);
  }
  (std::make_integer_sequence<int, count>());
}

/// A block of C of up to rows x columns tiles, which stays in registers for all k. With two by two
/// tiles, each product needs one load of a tile of A or B, which takes half the time of the product
/// (8 and 16 cycles).
template <class Tiles, int rows, int columns>
class TileBlock {
 public:
  static void multiply(const HostProduct<Bf16Pair>& p) {
    start(p);
    Index k = 0;
    if (p.m == rows * tile_side && p.n == columns * tile_side) {
      for (; k + tile_side <= p.k; k += tile_side) add_whole(p, k);
    }
    for (; k < p.k; k += tile_side) add_part(p, k);
    finish(p);
  }

 private:
  static constexpr int a_tile = 4, b_tile = 6;  // the tiles of C come first
  template <int tile>
  static constexpr int row = tile / columns;
  template <int tile>
  static constexpr int column = tile % columns;

  template <int tile>
  static float* c_of(const HostProduct<Bf16Pair>& p) {
    return p.c + row<tile> * tile_side * p.c_stride + column<tile> * tile_side;
  }

  static void start(const HostProduct<Bf16Pair>& p) {
    for_each_tile<rows * columns>([&]<int tile>(std::integral_constant<int, tile>) {
      if (!p.adds) return Tiles::template zero<tile>();
      alignas(64) TileCopy copy;
      const TileMemory c = whole_tile(c_of<tile>(p), p.c_stride, p.m - row<tile> * tile_side,
                                      p.n - column<tile> * tile_side, copy);
      Tiles::template load<tile>(c.data, c.row_bytes);
    });
  }

  static void add_whole(const HostProduct<Bf16Pair>& p, Index k) {
    for_each_tile<rows>([&]<int i>(std::integral_constant<int, i>) {
      Tiles::template load<a_tile + i>(p.a.data + i * tile_side * p.a.row + k, p.a.row * 4);
    });
    for_each_tile<columns>([&]<int j>(std::integral_constant<int, j>) {
      Tiles::template load<b_tile + j>(p.b + k * p.b_stride + j * tile_side, p.b_stride * 4);
    });
    add_products();
  }

  static void add_part(const HostProduct<Bf16Pair>& p, Index k) {
    alignas(64) TileCopy copy;
    for_each_tile<rows>([&]<int i>(std::integral_constant<int, i>) {
      const TileMemory a = whole_tile(p.a.data + i * tile_side * p.a.row + k, p.a.row,
                                      p.m - i * tile_side, p.k - k, copy);
      Tiles::template load<a_tile + i>(a.data, a.row_bytes);
    });
    for_each_tile<columns>([&]<int j>(std::integral_constant<int, j>) {
      const TileMemory b = whole_tile(p.b + k * p.b_stride + j * tile_side, p.b_stride, p.k - k,
                                      p.n - j * tile_side, copy);
      Tiles::template load<b_tile + j>(b.data, b.row_bytes);
    });
    add_products();
  }

  static void add_products() {
    for_each_tile<rows * columns>([]<int tile>(std::integral_constant<int, tile>) {
      Tiles::template add_products<tile, a_tile + row<tile>, b_tile + column<tile>>();
    });
  }

  static void finish(const HostProduct<Bf16Pair>& p) {
    for_each_tile<rows * columns>([&]<int tile>(std::integral_constant<int, tile>) {
      const Index m = p.m - row<tile> * tile_side, n = p.n - column<tile> * tile_side;
      float* const c = c_of<tile>(p);
      if (m >= tile_side && n >= tile_side)
        return Tiles::template store<tile>(c, p.c_stride * Index{4});
      alignas(64) float copy[tile_side * tile_side];
      Tiles::template store<tile>(copy, tile_side * 4);
      for (Index i = 0; i < std::min(m, tile_side); ++i)
        std::copy_n(copy + i * tile_side, std::min(n, tile_side), c + i * p.c_stride);
    });
  }
};

/// Multiplies rows of A with contiguous pairs, at most two tiles.
template <class Tiles>
void multiply_rows(HostProduct<Bf16Pair> p) {
  constexpr Index block = 2 * tile_side;
  const auto multiply = p.m > tile_side ? std::pair(&TileBlock<Tiles, 2, 1>::multiply,  //
                                                    &TileBlock<Tiles, 2, 2>::multiply)
                                        : std::pair(&TileBlock<Tiles, 1, 1>::multiply,  //
                                                    &TileBlock<Tiles, 1, 2>::multiply);
  const Index n = p.n;
  for (Index j = 0; j < n; j += block, p.b += block, p.c += block) {
    p.n = std::min(n - j, block);
    (p.n > tile_side ? multiply.second : multiply.first)(p);
  }
}

/// Multiplies rows of A whose pairs are not contiguous, at most two tiles. Gathers them once for
/// all columns.
template <class Tiles>
void multiply_gathered_rows(const HostProduct<Bf16Pair>& p) {
  constexpr Index max_pairs = 8 * tile_side;
  // Declared as bytes, because pairs would be set to zero.
  alignas(64) std::byte memory[2 * tile_side * max_pairs * sizeof(Bf16Pair)];
  auto* const gathered = reinterpret_cast<Bf16Pair*>(memory);
  for (Index k = 0; k == 0 || k < p.k; k += max_pairs) {
    HostProduct<Bf16Pair> part = p;
    part.k = std::min(p.k - k, max_pairs);
    part.a.data += k * p.a.column;
    part.b += k * p.b_stride;
    part.adds = p.adds || k > 0;
    gather_rows(part.a, part.m, part.k, gathered, max_pairs);
    part.a = {gathered, max_pairs};
    multiply_rows<Tiles>(part);
  }
}

}  // namespace detail

/// Computes the product in the thread's tiles, which must be configured. An element's sum runs over
/// blocks of 16 pairs in order for any m and n, and within a block in the processor's order.
template <class Tiles>
void multiply_in_tiles(const HostProduct<Bf16Pair>& p) {
  constexpr Index block = 2 * tile_side;
  for (Index i = 0; i < p.m; i += block) {
    HostProduct<Bf16Pair> part = p;
    part.m = std::min(p.m - i, block);
    part.a.data += i * p.a.row;
    part.c += i * p.c_stride;
    if (p.a.column == 1) {
      detail::multiply_rows<Tiles>(part);
    } else {
      detail::multiply_gathered_rows<Tiles>(part);
    }
  }
}

}  // namespace kzero::kernels
