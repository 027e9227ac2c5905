// The common parts of the attention kernels with scores in registers (warps.hpp): which rows a warp
// owns, and how tiles of the other rows pass through a team's scratch.
#pragma once

#include "kernels/attention/device_blocks.hpp"
#include "kernels/attention/mask.hpp"
#include "kernels/device/warp_rows.hpp"

namespace kzero::kernels {

/// The threads of a Kokkos team, as these kernels see them.
struct TeamThread {
  const Team& team;
  int thread;

  KOKKOS_INLINE_FUNCTION explicit TeamThread(const Team& of) : team(of), thread(thread_of(of)) {}
};

/// The rows of a kernel. A warp has 16 * down rows. With 32 it loads half as many fragments of the
/// other rows as with 16, but it has the registers for 32 only with a narrow head and a single sum.
template <class Arithmetic, class T, int width, int down>
struct WarpBlocks {
  using Fragments = typename Arithmetic::template Fragments<T>;
  static constexpr int across = width / 16;
  static constexpr int warp_rows = 16 * down, own = Arithmetic::warps * warp_rows;
  static constexpr int other = width <= 64 ? 64 : 32;  // rows of a tile
  static constexpr int stride = stride_of(width, sizeof(T));
  static constexpr int tile = other * stride;  // elements
  static constexpr int threads = Arithmetic::warps * Arithmetic::lanes;
  // Two pairs of tiles, one in use and one being copied, and two values for each row of both pairs.
  static constexpr int values = 4 * tile;  // where they begin, in elements
  static constexpr int bytes =
      values * static_cast<int>(sizeof(T)) + 4 * other * 4 + scratch_alignment;
  static_assert(2 * own <= 4 * other, "the own rows of two operands pass through the same place");
  static_assert(bytes <= scratch_limit);

  using Rows = HeadRows<const T>;
  using Factor = WarpFactor<Fragments, down, across>;  // the own rows of an operand
  using Sums = WarpSums<Fragments, down, across>;      // of the result

  KOKKOS_INLINE_FUNCTION static int lane(int thread) { return thread % Arithmetic::lanes; }
  KOKKOS_INLINE_FUNCTION static int warp_row(int thread) {
    return thread / Arithmetic::lanes * warp_rows;
  }

  /// Begins to copy a head's rows from `first` on to a tile [rows,width], zero beyond the head.
  /// Called by all threads of the team.
  template <int rows>
  KOKKOS_INLINE_FUNCTION static void copy(int thread, const Rows& from, Index first, T* to) {
    constexpr int whole = 16 / sizeof(T), packs = width / whole;
    constexpr int in_row = threads < packs ? threads : packs, at_once = threads / in_row;
    static_assert(in_row * at_once == threads && packs % in_row == 0);
    const int row = thread / in_row, column = thread % in_row * whole;
    const int left = static_cast<int>(from.length - first) - row;
    const T* data = from.data + (first + row) * from.stride + column;
    T* place = to + row * stride + column;
#pragma unroll
    for (int i = 0; i < (rows + at_once - 1) / at_once; ++i) {
      if (rows % at_once != 0 && row + i * at_once >= rows) break;
#pragma unroll
      for (int j = 0; j < width; j += in_row * whole) {
        const bool is_there = i * at_once < left && column + j < from.width;
        Fragments::template copy<16>(place + i * at_once * stride + j,
                                     is_there ? data + j : from.data, is_there);
      }
      data += at_once * from.stride;
    }
  }

  KOKKOS_INLINE_FUNCTION static Tile<const T> rows_from(const T* from, int row) {
    return {from + row * stride, stride};
  }

  /// Calls use(n, T* pair) for n in [0,count), once the pair of tiles that copy(n, T* pair) began
  /// to copy has arrived. Meanwhile the next pair is copied. Called by all threads of a team.
  template <class Thread, class Copy, class Use>
  KOKKOS_INLINE_FUNCTION static void for_tiles(const Thread& thread, int count, T* scratch,
                                               const Copy& copy, const Use& use) {
    if (count > 0) copy(0, scratch);
    for (int n = 0; n < count; ++n) {
      T* pair = scratch + n % 2 * 2 * tile;
      Fragments::wait_for_copies();
      thread.team.team_barrier();  // pair n has arrived, and no thread reads the previous one
      if (n + 1 < count) copy(n + 1, scratch + (n + 1) % 2 * 2 * tile);
      use(n, pair);
    }
  }

  /// Writes the warp's rows times `factors` to a head's rows from `first` on.
  KOKKOS_INLINE_FUNCTION static void write(Sums& sums, const HeadRows<T>& to, Index first, int lane,
                                           const float (&factors)[Sums::rows]) {
    T* data[Sums::rows];
    int used[Sums::rows];  // columns
    Sums::for_rows(lane, [&](int slot, int row) {
      data[slot] = to.data + (first + row) * to.stride;
      used[slot] = first + row < to.length ? to.width : 0;
    });
    sums.for_pairs(lane, [&](const PairPlace& at, const float* x) {
      const float factor = factors[at.slot];
      if (at.column < used[at.slot])
        Fragments::store_rounded(data[at.slot] + at.column, x[0] * factor, x[1] * factor);
    });
  }
};

/// The queries of a team's thread, and the keys that they see.
template <class Blocks, class Mask>
struct WarpQueries {
  Index head, first, row;  // the first rows of the team and of the warp
  int lane, warp_row;      // row - first
  Mask seen;               // that of the head's sequence

  KOKKOS_INLINE_FUNCTION WarpQueries(const AttentionShape& shape, const Mask& mask, int rank,
                                     int thread)
      : lane(Blocks::lane(thread)), warp_row(Blocks::warp_row(thread)), seen(mask) {
    const int blocks = static_cast<int>(blocks_of(shape, Blocks::own));
    head = rank / blocks;
    // The last block of queries sees the most keys, so it comes first.
    first = (blocks - 1 - rank % blocks) * Index{Blocks::own};
    row = first + warp_row;
    seen = mask.of_sequence(head / shape.heads);
  }

  /// Calls use(keys, values, ahead) for every `step` rows of k and v in order, as long as a query
  /// of the warp sees them. The first query is `ahead` rows after the first key. Called by all
  /// threads of a team.
  template <int step, class T, class Thread, class Use>
  KOKKOS_INLINE_FUNCTION void for_keys(const Thread& thread, const AttentionShape& shape,
                                       const HeadOperands<const T>& in, T* scratch,
                                       const Use& use) const {
    const Index kv_head = head / shape.group();
    const HeadRows<const T> k(in.k, shape, kv_head, shape.kv_heads);
    const HeadRows<const T> v(in.v, shape, kv_head, shape.kv_heads);
    const Index end = Kokkos::min(first + Blocks::own, shape.sequence);
    const int tiles = static_cast<int>((end + Blocks::other - 1) / Blocks::other);
    const int skipped = static_cast<int>(seen.first_key(first) / Blocks::other);
    Blocks::for_tiles(
        thread, tiles - skipped, scratch,
        [&](int n, T* pair) {
          const Index key = (n + skipped) * Index{Blocks::other};
          Blocks::template copy<Blocks::other>(thread.thread, k, key, pair);
          Blocks::template copy<Blocks::other>(thread.thread, v, key, pair + Blocks::tile);
        },
        [&](int n, const T* pair) {
          const Index tile = (n + skipped) * Index{Blocks::other};
          const int ahead = static_cast<int>(row - tile);
          int key = 0;
          if constexpr (Mask::has_documents) {
            const int hidden = static_cast<int>(seen.first_key(row) - tile);
            key = Kokkos::max(0, hidden / step * step);
          }
#pragma unroll 1
          for (; key < Blocks::other && key < ahead + Blocks::warp_rows; key += step)
            use(Blocks::rows_from(pair, key), Blocks::rows_from(pair + Blocks::tile, key),
                ahead - key);
        });
  }
};

}  // namespace kzero::kernels
