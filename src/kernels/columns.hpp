// Divides the columns of a matrix into parts, each contiguous in memory, and joins them again: what
// an exchange of rows for columns between ranks sends and receives.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Columns of rows [n, width]: row i begins at data + i * stride. `copies` neighbouring parts have
/// the same columns.
template <class T>
struct Columns {
  T* data = nullptr;
  Index stride = 0;
  Index width = 0;
  Index copies = 1;

  /// The columns of one of `parts` parts.
  KOKKOS_INLINE_FUNCTION Index part(Index parts) const { return width * copies / parts; }
};

/// Up to three matrices with the same rows, side by side. All widths are multiples of the number of
/// parts, or of the number of different ones.
template <class T>
struct SideBySide {
  Columns<T> matrix[3];
  Index rows = 0;

  /// The columns of one of `parts` parts.
  KOKKOS_INLINE_FUNCTION Index part(Index parts) const {
    return matrix[0].part(parts) + matrix[1].part(parts) + matrix[2].part(parts);
  }
};

/// Writes parts [parts, n, from.part(parts)]: in part p, each row has the p-th part of the columns
/// of each matrix, one matrix after another.
template <class T>
void split_columns(const Execution& exec, const SideBySide<const T>& from, Index parts,
                   Vector<T> to);

/// The inverse of split_columns. Copies are added in fp32 in the order of the parts.
template <class T>
void join_columns(const Execution& exec, Vector<const T> from, Index parts,
                  const SideBySide<T>& to);

}  // namespace kzero::kernels
