// Sums in a fixed order: over ranks in rank order, over elements in blocks. Results depend neither
// on the number of threads nor on the rank that computes them.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Returns the sum in fp64, in element order on hosts; on devices one team's threads take strided
/// elements and their sums are added in a tree. Waits for the result.
double sum_in_order(const Execution& exec, Vector<const float> x);

/// Elements per block of sum_of_squares.
inline constexpr Index squares_block = 8192;

/// Returns the sum of squares in fp64 over blocks of fp32 sums; not finite if any element is not.
/// Waits for the result. partial [ceil(count / squares_block)].
template <class T>
double sum_of_squares(const Execution& exec, Vector<const T> x, Vector<float> partial);

/// The values of every rank for a range: the own ones separate, those of rank r at others[r *
/// stride].
template <class T>
struct PerRank {
  const T* others = nullptr;
  Index stride = 0;
  const T* own = nullptr;
  int ranks = 1;
  int rank = 0;
};

/// Computes out[i] = round(base[i] + sum over ranks in rank order of their i-th value) with fp32
/// sums; base may be null. out may be the own values or base. Out is T or float.
template <class T, class Out>
void ordered_sum(const Execution& exec, const PerRank<T>& values, const float* base,
                 Vector<Out> out);

/// Computes out(i, j) = round(sum over ranks in rank order of their values + bias[j] + addend(i,
/// j)) in fp32; bias [D] and addend [n,D] may be null. Values and out are [n,D]; out may be the own
/// values or the addend.
template <class T>
void sum_partial_rows(const Execution& exec, const PerRank<T>& values, const T* bias,
                      const T* addend, Matrix<T> out);

}  // namespace kzero::kernels
