// The block of a head that a team of the device's attention kernels processes, and the operations
// that forward and backward share.
#pragma once

#include "kernels/attention/head_tile.hpp"

namespace kzero::kernels {

// A warp is a Kokkos thread and its lanes are vector lanes, so that a row's maximum and sum stay
// within one warp.
inline constexpr int team_warps = team_size(4), warp_lanes = vector_length(32);
inline constexpr int team_threads = team_warps * warp_lanes;

// 128 registers per thread: four teams at once on a multiprocessor's 65536 registers. Declared as
// two teams of twice the size, because Kokkos refuses GPUs whose scratch has no room for four.
using BlockPolicy = BoundedPolicy<2 * team_threads, 2>;

/// Rows of a team's own block, and of the blocks that it walks over.
struct Blocks {
  int own, other;
};

/// The scratch layout of a kernel.
struct Needs {
  int own_tiles, other_tiles;  // [own,width] and [other,width]
  int sums, rounded;           // [own,other] in fp32 and in T
  int row_values;              // fp32 values per own row
};

// Kokkos 4.7 gives a CUDA team the default 48 KiB of a launch, less its own use.
inline constexpr int scratch_limit = 40936;

constexpr int scratch_bytes(const Needs& n, const Blocks& b, int width, int element) {
  return (n.own_tiles * b.own + n.other_tiles * b.other) * stride_of(width, element) * element +
         n.sums * b.own * stride_of(b.other, 4) * 4 +
         n.rounded * b.own * stride_of(b.other, element) * element + n.row_values * b.own * 4 +
         scratch_alignment;
}

constexpr Blocks largest_blocks(const Needs& needs, int width, int element) {
  for (const Blocks b : {Blocks{64, 32}, Blocks{32, 32}, Blocks{32, 16}}) {
    if (scratch_bytes(needs, b, width, element) <= scratch_limit) return b;
  }
  return {16, 16};
}

/// A team's head, block and part of the output's columns.
struct BlockIndex {
  Index head, block;
  int part;
};

/// Heads wider than a tile are processed in parts, each by its own team.
KOKKOS_INLINE_FUNCTION int parts_of(const AttentionShape& s, int width) {
  return static_cast<int>((s.head_width + width - 1) / width);
}

KOKKOS_INLINE_FUNCTION Index blocks_of(const AttentionShape& s, int rows) {
  return (s.sequence + rows - 1) / rows;
}

KOKKOS_INLINE_FUNCTION BlockIndex block_index_of(const Team& team, const AttentionShape& s,
                                                 int rows, int width) {
  const int parts = parts_of(s, width);
  const Index blocks = blocks_of(s, rows), rank = team.league_rank() / parts;
  return {rank / blocks, rank % blocks, team.league_rank() % parts};
}

/// This thread's number in its team.
KOKKOS_INLINE_FUNCTION int thread_of(const Team& team) {
  int lane = 0;
  Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, warp_lanes), [&](int i) { lane = i; });
  return team.team_rank() * warp_lanes + lane;
}

/// The operations that the teams of forward and backward share.
template <class Arithmetic, class T, int width, Needs needs>
struct TileWork {
  static constexpr Blocks blocks = largest_blocks(needs, width, sizeof(T));
  static constexpr int own = blocks.own, other = blocks.other;
  static constexpr int bytes = scratch_bytes(needs, blocks, width, sizeof(T));
  static_assert(bytes - needs.row_values * own * 4 - scratch_alignment >=
                    own * stride_of(width, 4) * 4,
                "write's tile is where the other tiles were");

  using Scores = typename Arithmetic::template GemmProblem<T, own, other>;
  using Output = typename Arithmetic::template GemmProblem<T, own, width>;

  /// Computes scores [own,other] = A B^T over the full width of the heads. Read them after the next
  /// barrier.
  template <int left_rows, int right_rows>
  KOKKOS_INLINE_FUNCTION static void multiply(const Team& team, int thread, int parts,
                                              HeadTile<T, left_rows, width>& left, Index left_row,
                                              HeadTile<T, right_rows, width>& right,
                                              Index right_row, const Tile<float>& scores) {
    Scores product(thread);
    for (int part = 0; part < parts; ++part) {
      left.hold(team, left_row, part);
      right.hold(team, right_row, part);
      team.team_barrier();
      product.add_transposed(left.tile(), right.tile(), left.depth());
    }
    product.store(scores);
  }

  /// Writes rows from `first` on = factor(row of the tile) * product. Uses `between` [own,width] as
  /// a buffer.
  template <class F>
  KOKKOS_INLINE_FUNCTION static void write(const Team& team, Output& product, float* between,
                                           const HeadRows<T>& to, Index first, int part,
                                           const F& factor) {
    const Tile<float> tile{between, stride_of(width, 4)};
    team.team_barrier();  // all threads have read the previous contents
    product.store(tile);
    team.team_barrier();
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, own * width), [&](int n) {
      const int i = n / width, j = n % width, column = part * width + j;
      if (first + i < to.length && column < to.width) {
        to.data[(first + i) * to.stride + column] = static_cast<T>(tile(i, j) * factor(i));
      }
    });
  }
};

}  // namespace kzero::kernels
