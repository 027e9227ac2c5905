// Sums whose order is fixed: over ranks in rank order, over elements in blocks. Their results
// depend neither on the number of threads nor on who computes them.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// The sum in fp64, in element order on hosts; on devices one team's threads take turns, and their
/// sums are added in a tree. Waits for the result.
double sum_in_order(const Execution& exec, Vector<const float> x);

/// Elements that one block of sum_of_squares covers.
inline constexpr Index squares_block = 8192;

/// The sum of squares in fp64 over blocks of fp32 sums; not finite if any element is not.
/// Waits for the result. partial [ceil(count / squares_block)].
template <class T>
double sum_of_squares(const Execution& exec, Vector<const T> x, Vector<float> partial);

/// The values of every rank for a range: the own ones apart, rank r's others at others[r * stride].
template <class T>
struct PerRank {
  const T* others = nullptr;
  Index stride = 0;
  const T* own = nullptr;
  int ranks = 1;
  int rank = 0;
};

/// out[i] = round(base[i] + sum over ranks in rank order of their i-th value), sums in fp32;
/// without base where it is null. out may be the own values or base. Out is T or float.
template <class T, class Out>
void ordered_sum(const Execution& exec, const PerRank<T>& values, const float* base,
                 Vector<Out> out);

/// out(i, j) = round(sum over ranks in rank order of their values + bias[j] + addend(i, j)) in
/// fp32; bias [D] and addend [n,D] may be null. Values and out are [n,D]; out may be the own values
/// or the addend.
template <class T>
void sum_partial_rows(const Execution& exec, const PerRank<T>& values, const T* bias,
                      const T* addend, Matrix<T> out);

}  // namespace kzero::kernels
