// Sums in a fixed order: over ranks in rank order, over elements in blocks. Results do not depend
// on the number of threads or on how elements are partitioned over ranks.
#pragma once

#include "kernels/exact_sum.hpp"
#include "kernels/launch_table.hpp"
#include "kernels/row.hpp"

namespace kzero::kernels {

/// Sets *sum, in device memory, to the sum of weights(i) * x(i) in fp64. Empty weights are all 1.
/// Hosts add in element order. On devices the threads of one team sum strided elements, and a tree
/// adds their sums.
void sum_in_order(const Execution& exec, Vector<const float> x, double* sum,
                  Vector<const float> weights = {});

/// Elements per block of sum_of_squares.
inline constexpr Index squares_block = 64;

/// Elements [first, first + count) of a unit, at `data`.
template <class T>
struct UnitElements {
  const T* data = nullptr;
  Index first = 0, count = 0;
};

/// Ranges of units whose squares one launch sums.
template <class T>
class SquaresTable {
 public:
  static constexpr int max_ranges = 64;
  using Table = LaunchTable<UnitElements<T>, max_ranges>;

  bool is_full() const { return table_.is_full(); }
  bool is_empty() const { return table_.blocks() == 0; }
  /// Appends a range. The table must not be full.
  void add(const UnitElements<T>& range);
  void clear() { table_.clear(); }
  const Table& table() const { return table_; }

 private:
  Table table_;
};

/// Sets *sum, in device memory, to the sum of squares of all elements of a table. Blocks of
/// squares_block elements, counted from a unit's beginning, are summed in fp32. The blocks are
/// added exactly. Ranges that meet at multiples of squares_block therefore give the same total
/// however units are divided.
template <class T>
void sum_of_squares(const Execution& exec, const SquaresTable<T>& ranges, ExactSum* sum);

/// The same of elements [first, first + x's extent) of one unit.
template <class T>
void sum_of_squares(const Execution& exec, Vector<const T> x, Index first, ExactSum* sum);

/// Adds *part to *sum, both in device memory.
void add_exact_sum(const Execution& exec, const ExactSum* part, ExactSum* sum);

/// The values that every rank has for a range of elements, as terms of their sum. This rank's own
/// values are separate. Those of rank r are at others[r * stride].
template <class T>
struct RankValues {
  const T* others = nullptr;
  Index stride = 0;
  const T* own = nullptr;
  int ranks = 1;  // number of ranks that have values
  int rank = 0;   // this rank; if it is >= `ranks`, the own values are left out
};

template <class T>
KOKKOS_INLINE_FUNCTION const T* values_of(const RankValues<T>& values, int rank) {
  return rank == values.rank ? values.own : values.others + rank * values.stride;
}

/// Number of columns that one team sums over ranks. The sums stay in registers or the first-level
/// cache. Code that passes it to min writes Index{column_block}, because a constant has no address
/// in device code.
inline constexpr Index column_block = 256;

/// Computes out(i, j) = round(sum over ranks in rank order of their values + bias[j] + addend(i,
/// j)) in fp32. bias [D] and addend [n,D] may be null. Values and out are [n,D]. out may be the own
/// values or the addend.
template <class T>
void sum_partial_rows(const Execution& exec, const RankValues<T>& values, const T* bias,
                      const T* addend, Matrix<T> out);

}  // namespace kzero::kernels
