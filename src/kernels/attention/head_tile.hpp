// Tiles of a head's rows in a team's scratch.
#pragma once

#include "kernels/attention/attention.hpp"
#include "kernels/device/tile_product.hpp"
#include "kernels/pack.hpp"

namespace kzero::kernels {

inline constexpr int scratch_alignment = 32;  // tensor cores require this of a tile's address

/// Elements from row to row of a tile. 16 extra bytes put the rows into different banks.
constexpr int stride_of(int columns, int element) { return columns + 16 / element; }

/// Divides a team's scratch into buffers.
class Scratch {
 public:
  KOKKOS_INLINE_FUNCTION Scratch(const Team& team, int bytes)
      : next_(static_cast<char*>(team.team_scratch(0).get_shmem_aligned(bytes - scratch_alignment,
                                                                        scratch_alignment))) {}

  template <class T>
  KOKKOS_INLINE_FUNCTION T* take(int count) {
    T* chunk = reinterpret_cast<T*>(next_);
    next_ += count * static_cast<int>(sizeof(T));
    return chunk;
  }

  template <class T, int rows, int columns>
  KOKKOS_INLINE_FUNCTION Tile<T> take_tile() {
    constexpr int stride = stride_of(columns, sizeof(T));
    return {take<T>(rows * stride), stride};
  }

 private:
  char* next_;
};

/// One head's rows of one operand: [T,d], `stride` elements from row to row.
template <class T>
struct HeadRows {
  T* data;
  Index stride, length;
  int width;

  struct InSequence {
    Index sequence, head;
  };

  KOKKOS_INLINE_FUNCTION HeadRows(const HeadColumns<T>& of, const AttentionShape& s,
                                  const InSequence& at)
      : data(of.data + at.sequence * s.sequence * of.stride + at.head * s.head_width),
        stride(of.stride),
        length(s.sequence),
        width(static_cast<int>(s.head_width)) {}

  /// Head `head` of all sequences' heads. Each sequence has `heads`.
  KOKKOS_INLINE_FUNCTION HeadRows(const HeadColumns<T>& of, const AttentionShape& s, Index head,
                                  Index heads)
      : HeadRows(of, s, InSequence{head / heads, head % heads}) {}
};

/// A tile [rows,width] of a head, zero beyond the head's rows and columns. Heads wider than `width`
/// are processed in parts of that many columns.
template <class T, int rows, int width>
class HeadTile {
 public:
  KOKKOS_INLINE_FUNCTION HeadTile(const HeadRows<const T>& from, Scratch& scratch)
      : from_(from), tile_(scratch.take_tile<T, rows, width>()) {}

  /// Switches to another head.
  KOKKOS_INLINE_FUNCTION void read(const HeadRows<const T>& from) {
    from_ = from;
    first_ = -1;
  }

  /// Loads the rows from `first` on of part `part`. Read them after the next barrier. Called by all
  /// threads of the team.
  KOKKOS_INLINE_FUNCTION void hold(const Team& team, Index first, int part) {
    if (first == first_ && part == part_) return;
    first_ = first;
    part_ = part;
    team.team_barrier();  // the previous contents may still be read
    constexpr int whole = 16 / sizeof(T);
    if (begin_packs(from_.data) && from_.stride % whole == 0 && from_.width % whole == 0) {
      load<whole>(team);
    } else {
      load<1>(team);
    }
  }

  KOKKOS_INLINE_FUNCTION Tile<const T> tile() const { return {tile_.data, tile_.stride}; }

  /// Number of columns that are not all zero, rounded up to a fragment.
  KOKKOS_INLINE_FUNCTION int depth() const {
    return (Kokkos::min(from_.width - part_ * width, width) + 15) / 16 * 16;
  }

 private:
  template <int count>
  KOKKOS_INLINE_FUNCTION void load(const Team& team) const {
    constexpr int in_row = width / count;
    const int left = from_.width - part_ * width;
    Kokkos::parallel_for(Kokkos::TeamVectorRange(team, rows * in_row), [&](int n) {
      const int i = n / in_row, j = n % in_row * count;
      Pack<T, count> pack{};
      if (first_ + i < from_.length && j < left) {
        pack = Pack<T, count>::at(from_.data + (first_ + i) * from_.stride + part_ * width + j);
      }
      Pack<T, count>::at(&tile_(i, j)) = pack;
    });
  }

  HeadRows<const T> from_;
  Tile<T> tile_;
  Index first_ = -1;
  int part_ = -1;
};

}  // namespace kzero::kernels
