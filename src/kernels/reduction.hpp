// Sums whose order is fixed: over rows in a set number of groups, over ranks in rank order, over
// elements in blocks. Their results depend neither on the number of threads nor on who computes
// them.
#pragma once

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Whether a gradient replaces what is there or is added to it (later micro-batches, second uses).
enum class Update { overwrite, add };

/// Groups into which the rows of a batch are cut for sums over rows.
inline constexpr Index row_groups = 32;

/// out[j] (=|+=) sum over g of partial(g, first + j), j over out. partial [row_groups, any].
template <class T>
void sum_groups(const Execution& exec, Matrix<const float> partial, Index first, Update mode,
                Vector<T> out);

/// out[j] (=|+=) sum over rows of x(i, j): the gradient of a bias. x [N,D], out [D], partial
/// [row_groups, D].
template <class T>
void sum_rows(const Execution& exec, Matrix<const T> x, Update mode, Vector<T> out,
              Matrix<float> partial);

/// The sum in element order, in fp64. Waits for the result.
double sum_in_order(const Execution& exec, Vector<const float> x);

/// Elements that one block of sum_of_squares covers.
inline constexpr Index squares_block = 8192;

/// The sum of squares in fp64 over blocks of fp32 sums; not finite if any element is not.
/// Waits for the result. partial [ceil(count / squares_block)].
template <class T>
double sum_of_squares(const Execution& exec, Vector<const T> x, Vector<float> partial);

/// out[i] = round(sum over r in order of sources[r * stride + i]) with fp32 sums, except that rank
/// `own`'s values come from out itself. sources [ranks * stride], out [count].
template <class T>
void ordered_sum(const Execution& exec, const T* sources, Index stride, int ranks, int own,
                 Vector<T> out);

}  // namespace kzero::kernels
