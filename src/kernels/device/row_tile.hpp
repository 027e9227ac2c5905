// Rows of a batch in the registers of a team. Each lane has a pack of the same columns of every
// row, so that a row is read once from memory, and a lane can add up its columns over many rows.
#pragma once

#include <cstdint>

#include "kernels/device/registers_cuda.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// Columns of a lane's pack.
inline constexpr int tile_columns = 8;

/// Rows of a tile. A lane reads 64 bytes of an array before it waits for the first.
template <class T>
inline constexpr int tile_rows = 8 / static_cast<int>(sizeof(T));

// Teams of 512 threads have 128 registers each. A host in place of a device has few lanes, which
// then have many packs.
inline constexpr int warp_size = 32, tile_threads = 512;
inline constexpr int row_packs = runtime::kernels_on_host ? 64 : tile_threads;
inline constexpr int lane_packs = runtime::kernels_on_host ? row_packs : 1;

/// The most columns of a row in registers.
inline constexpr Index widest_tile = Index{row_packs} * tile_columns;

using TilePolicy = BoundedPolicy<tile_threads, 1>;

/// True if rows of this width that begin at these addresses fit registers. A null pointer fits.
template <class... T>
bool suits_tile(Index width, const T*... data) {
  return width % tile_columns == 0 && width <= widest_tile && begin_packs(data...);
}

/// Teams with a lane for each pack of a row.
inline TilePolicy tile_policy(const Execution& exec, Index teams, Index width) {
  const Index warps = ceil_div(width, Index{warp_size * tile_columns});
  return {exec, static_cast<int>(teams), team_size(static_cast<int>(warps)),
          vector_length(warp_size)};
}

/// The packs of a row that a lane holds.
class LanePacks {
 public:
  KOKKOS_INLINE_FUNCTION LanePacks(const Team& team, Index width) : width_(width) {
    constexpr int in_warp = vector_length(warp_size);
    Kokkos::parallel_for(Kokkos::ThreadVectorRange(team, in_warp), [&](int i) { lane_ = i; });
    lane_ += team.team_rank() * in_warp;
    lanes_ = team.team_size() * in_warp;
  }

  KOKKOS_INLINE_FUNCTION bool is_first_lane() const { return lane_ == 0; }
  KOKKOS_INLINE_FUNCTION int lanes() const { return lanes_; }

  /// Calls f(number, column of its first element) for each pack.
  template <class F>
  KOKKOS_INLINE_FUNCTION void for_each(const F& f) const {
#pragma unroll
    for (int p = 0; p < lane_packs; ++p) {
      const Index j = (Index{p} * lanes_ + lane_) * tile_columns;
      if (j < width_) f(p, j);
    }
  }

 private:
  Index width_;
  int lane_ = 0, lanes_ = 0;
};

/// The first rows of [begin, end), as many as a tile has.
struct TileRows {
  Index begin, end;

  /// Calls f(number in the tile, row).
  template <int most, class F>
  KOKKOS_INLINE_FUNCTION void for_each(const F& f) const {
#pragma unroll
    for (int r = 0; r < most; ++r) {
      if (begin + r < end) f(r, begin + r);
    }
  }
};

/// A pack in 32-bit registers.
template <class T>
class HeldPack {
 public:
  using Elements = Pack<T, tile_columns>;

  KOKKOS_INLINE_FUNCTION Elements elements() const { return Kokkos::bit_cast<Elements>(words_); }
  KOKKOS_INLINE_FUNCTION void operator=(const Elements& from) {
    words_ = Kokkos::bit_cast<Words>(from);
  }

  /// Between two uses of the elements: nvcc would keep each of them in a register from the first to
  /// the second.
  KOKKOS_INLINE_FUNCTION void forget_elements() {
#pragma unroll
    for (std::uint32_t& word : words_.of) forget_derived(word);
  }

 private:
  struct alignas(16) Words {
    std::uint32_t of[sizeof(Elements) / 4];
  };
  Words words_ = {};
};

/// A lane's part of a tile. Rows past the end are 0.
template <class T>
struct RowTile {
  static constexpr int rows = tile_rows<T>;

  HeldPack<T> packs[lane_packs][rows];

  /// data [any,width]
  KOKKOS_INLINE_FUNCTION void read(const LanePacks& lane, const TileRows& tile, const T* data,
                                   Index width) {
    lane.for_each([&](int p, Index j) {
      tile.template for_each<rows>(
          [&](int r, Index i) { packs[p][r] = Pack<T, tile_columns>::at(data + i * width + j); });
    });
  }
  KOKKOS_INLINE_FUNCTION void write(const LanePacks& lane, const TileRows& tile, T* data,
                                    Index width) const {
    lane.for_each([&](int p, Index j) {
      T* first = data + tile.begin * width + j;
      tile.template for_each<rows>([&](int r, Index) {
        Pack<T, tile_columns>::at(first + r * width) = packs[p][r].elements();
      });
    });
  }
  KOKKOS_INLINE_FUNCTION void forget_elements() {
#pragma unroll
    for (auto& of_rows : packs) {
#pragma unroll
      for (auto& pack : of_rows) pack.forget_elements();
    }
  }
};

/// A value for each row of a tile.
template <class V, int rows>
struct PerRow {
  V of[rows] = {};

  KOKKOS_INLINE_FUNCTION PerRow& operator+=(const PerRow& other) {
#pragma unroll
    for (int r = 0; r < rows; ++r) of[r] += other.of[r];
    return *this;
  }
};

/// The sums of all lanes' values, on every lane. The whole team calls it.
template <class V, int rows>
KOKKOS_INLINE_FUNCTION PerRow<V, rows> sum_of_lanes(const Team& team, const LanePacks& lane,
                                                    const PerRow<V, rows>& mine) {
  PerRow<V, rows> total;
  Kokkos::parallel_reduce(
      Kokkos::TeamVectorRange(team, lane.lanes()),
      [&](int, PerRow<V, rows>& partial) { partial += mine; }, total);
  return total;
}

}  // namespace kzero::kernels
