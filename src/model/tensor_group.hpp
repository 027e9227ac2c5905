// Collectives of a tensor-parallel group: reductions and gathers of rows of activations. A
// reduce-scatter is an all-to-all of rows, then each rank adds the ranks' values of its own rows in
// rank order in fp32: the same bits on every rank, whatever the MPI library, and the traffic of a
// ring.
#pragma once

#include "kernels/row_sums.hpp"
#include "model/model.hpp"

namespace kzero::model {

/// Elements that a rank of a group sends for a matrix [rows,width] in each of TensorGroup's
/// collectives.
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

/// Rows [begin, end) of each matrix [n,w] belong to a rank as part_begin() splits them. Every
/// function is collective over the group; with one rank none may be called.
template <class T>
class TensorGroup {
 public:
  /// Takes a buffer for matrices of `rows` rows and `width` columns from the buckets category;
  /// nothing for a single rank.
  TensorGroup(memory::Arenas& arenas, const TensorLink& link, Index rows, Index width);

  Index size() const { return link_.rank.size; }
  Index rank() const { return link_.rank.rank; }

  /// Reduce-scatters: own [n of this rank,w] = the ranks' sum of `partial` [n,w], this rank's rows,
  /// + bias [w] + addend [n of this rank,w], either of which may be null. own may be those rows of
  /// partial, or addend.
  void reduce_scatter(const Execution& exec, const Matrix<T>& partial, const T* bias,
                      const T* addend, T* own) const;

  /// All-gathers the ranks' own rows to all [n,w], in rank order; `own` may be its part of all.
  void all_gather(const Execution& exec, const T* own, const Matrix<T>& all,
                  comm::Purpose purpose) const;

  /// All-reduces: out [n,w] = the ranks' sum of partial + bias + addend [n,w] on every rank. out
  /// may be partial or addend.
  void all_reduce(const Execution& exec, const Matrix<T>& partial, const T* bias, const T* addend,
                  const Matrix<T>& out) const;

  /// Computes sum [elements] (=|+=) the sum of `partial` over the `copies` neighbouring ranks that
  /// hold copies of the same parameters, in rank order. Their groups begin at multiples of
  /// `copies`, which divides the number of ranks; 1: none but this rank. Sends copies - 1 times all
  /// elements.
  void sum_of_copies(const Execution& exec, Index copies, const T* partial, Index elements,
                     kernels::Update update, T* sum) const;

  /// All-gathers every rank's [count] to `all`, in rank order; the own one is there already.
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
