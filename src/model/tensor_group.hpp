// Collectives of a tensor-parallel group: reductions and gathers of rows of activations. A
// reduce-scatter is an all-to-all of rows, after which each rank sums its own rows in rank order in
// fp32. All ranks and MPI libraries therefore give the same bits. The traffic is that of a ring.
#pragma once

#include "kernels/row_sums.hpp"
#include "model/model.hpp"

namespace kzero::model {

/// The elements that a rank of a group sends for a matrix [rows,width] in each TensorGroup
/// collective.
struct RowTraffic {
  Index scattered = 0;  // reduce_scatter
  Index gathered = 0;   // all_gather

  RowTraffic(const TensorRank& tensor, Index rows, Index width) {
    const Index own = part_size(rows, tensor.size, tensor.rank);
    scattered = (rows - own) * width;
    gathered = own * (tensor.size - 1) * width;
  }
  Index all_reduced() const { return scattered + gathered; }
};

/// part_begin() assigns rows [begin, end) of each matrix [n,w] to a rank. Every function is
/// collective over the group. Do not call any on a single rank.
template <class T>
class TensorGroup {
 public:
  /// Allocates a buffer for matrices [rows,width] from the buckets category, or nothing for a
  /// single rank.
  TensorGroup(memory::Arenas& arenas, const TensorLink& link, Index rows, Index width);

  Index size() const { return link_.rank.size; }
  Index rank() const { return link_.rank.rank; }

  /// Reduce-scatters: own [n of this rank,w] = this rank's rows of the sum of `partial` [n,w] over
  /// the ranks + bias [w] + addend [n of this rank,w]. bias and addend may be null. own may be
  /// those rows of partial, or addend.
  void reduce_scatter(const Execution& exec, const Matrix<T>& partial, const T* bias,
                      const T* addend, T* own) const;

  /// All-gathers the ranks' own rows into all [n,w] in rank order. `own` may be this rank's part of
  /// all.
  void all_gather(const Execution& exec, const T* own, const Matrix<T>& all,
                  comm::Purpose purpose) const;

  /// All-reduces: out [n,w] = sum of partial over the ranks + bias + addend [n,w], on every rank.
  /// out may be partial or addend.
  void all_reduce(const Execution& exec, const Matrix<T>& partial, const T* bias, const T* addend,
                  const Matrix<T>& out) const;

  /// Computes sum [elements] (=|+=) the sum of `partial`, in rank order, over the `copies`
  /// neighbouring ranks that hold the same parameters. Groups of copies begin at multiples of
  /// `copies`, which divides the number of ranks. With copies = 1, only this rank counts. Sends
  /// copies - 1 times all elements.
  void sum_of_copies(const Execution& exec, Index copies, const T* partial, Index elements,
                     kernels::Update update, T* sum) const;

  /// All-gathers [count] elements of every rank into `all` in rank order. This rank's elements are
  /// already there.
  void exchange_own(const Execution& exec, float* all, Index count) const;

 private:
  Index first_row(Index rows, Index rank) const { return part_begin(rows, size(), rank); }
  void sum_own_rows(const Execution& exec, const Matrix<T>& partial, const T* bias, const T* addend,
                    T* own, comm::Operation operation) const;
  void gather(const Execution& exec, const T* own, const Matrix<T>& all, comm::Operation operation,
              comm::Purpose purpose) const;

  TensorLink link_;
  Index buffer_elements_ = 0;
  T* buffer_ = nullptr;
};

}  // namespace kzero::model
