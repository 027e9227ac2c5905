// The keys that the document mask hides from the rows of a warp (warps.hpp). Rows and columns count
// from the warp's first row. Without documents these classes are empty and hide nothing.
#pragma once

#include "kernels/attention/warp_blocks.hpp"

namespace kzero::kernels {

/// The first key that each of a lane's rows of queries sees.
template <class Blocks, class Mask>
struct WarpFirstKeys {
  KOKKOS_INLINE_FUNCTION explicit WarpFirstKeys(const WarpQueries<Blocks, Mask>& /*at*/) {}
  KOKKOS_INLINE_FUNCTION bool may_hide(int /*ahead*/) const { return false; }
  KOKKOS_INLINE_FUNCTION bool hides(int /*slot*/, int /*column*/, int /*ahead*/) const {
    return false;
  }
};

template <class Blocks, class Mask>
requires(Mask::has_documents) struct WarpFirstKeys<Blocks, Mask> {
  int first[Blocks::Sums::rows], last;  // the last row's is the largest

  KOKKOS_INLINE_FUNCTION explicit WarpFirstKeys(const WarpQueries<Blocks, Mask>& at)
      : last(static_cast<int>(at.seen.first_key(at.row + Blocks::warp_rows - 1) - at.row)) {
    Blocks::Sums::for_rows(at.lane, [&](int slot, int row) {
      first[slot] = static_cast<int>(at.seen.first_key(at.row + row) - at.row);
    });
  }

  /// True if a row may not see all keys from the key `ahead` before the first row on.
  KOKKOS_INLINE_FUNCTION bool may_hide(int ahead) const { return -ahead < last; }
  /// True if the row of this slot does not see the key `column` after that one.
  KOKKOS_INLINE_FUNCTION bool hides(int slot, int column, int ahead) const {
    return column - ahead < first[slot];
  }
};

/// The end of the queries that see each of a lane's rows of keys.
template <class Blocks, class Mask>
struct WarpQueryEnds {
  KOKKOS_INLINE_FUNCTION WarpQueryEnds(const Mask& /*seen*/, Index /*first*/, int /*lane*/) {}
  KOKKOS_INLINE_FUNCTION bool may_see(int /*query*/) const { return true; }
  KOKKOS_INLINE_FUNCTION bool may_hide(int /*query_end*/) const { return false; }
  KOKKOS_INLINE_FUNCTION bool hides(int /*slot*/, int /*query*/) const { return false; }
};

template <class Blocks, class Mask>
requires(Mask::has_documents) struct WarpQueryEnds<Blocks, Mask> {
  int end[Blocks::Sums::rows], min_end, max_end;  // those of the first and of the last row

  /// `first` is the warp's first row.
  KOKKOS_INLINE_FUNCTION WarpQueryEnds(const Mask& seen, Index first, int lane)
      : min_end(static_cast<int>(seen.end_of_queries(first) - first)),
        max_end(static_cast<int>(seen.end_of_queries(first + Blocks::warp_rows - 1) - first)) {
    Blocks::Sums::for_rows(lane, [&](int slot, int row) {
      end[slot] = static_cast<int>(seen.end_of_queries(first + row) - first);
    });
  }

  /// True if a row may be seen by queries from `query` on.
  KOKKOS_INLINE_FUNCTION bool may_see(int query) const { return query < max_end; }
  /// True if a row may not be seen by all queries before `query_end`.
  KOKKOS_INLINE_FUNCTION bool may_hide(int query_end) const { return query_end > min_end; }
  KOKKOS_INLINE_FUNCTION bool hides(int slot, int query) const { return query >= end[slot]; }
};

}  // namespace kzero::kernels
