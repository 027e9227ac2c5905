// What the ranks of a tensor-parallel group do together: sums and gathers of rows of activations. A
// sum is an exchange of rows, then each rank adds the ranks' values of its own rows in rank order
// in fp32: the same bits on every rank, whatever the MPI library, and what a ring all-reduce sends.
#pragma once

#include "comm/communicator.hpp"
#include "kernels/row.hpp"
#include "memory/arenas.hpp"
#include "model/gpt_spec.hpp"

namespace kzero::model {

using tensor::Execution;
using tensor::Matrix;
using tensor::Vector;

/// The communicator of a tensor group, null while measuring or of a group of one, and the bytes
/// that an exchange may buffer.
struct TensorLink {
  TensorRank rank;
  comm::Communicator* comm = nullptr;
  Index bucket = Index{32} << 20;
};

/// Rows [begin, end) of each matrix [n,w] belong to a rank as GptShape::first_row cuts them. Every
/// function is collective over the group; with one rank none may be called.
template <class T>
class TensorGroup {
 public:
  /// Takes a buffer for matrices of `rows` rows and `width` columns from the buckets category:
  /// nothing for a single rank.
  TensorGroup(memory::Arenas& arenas, const TensorLink& link, Index rows, Index width);

  Index size() const { return link_.rank.size; }
  Index rank() const { return link_.rank.rank; }

  /// own [n of this rank,w] = the ranks' sum of `partial` [n,w], this rank's rows, + bias [w] +
  /// addend [n of this rank,w], either may be null. own may be those rows of partial, or addend.
  void reduce_scatter(const Execution& exec, const Matrix<T>& partial, const T* bias,
                      const T* addend, T* own) const;

  /// all [n,w] = the ranks' own rows one behind the other; `own` may lie in its place in all.
  void all_gather(const Execution& exec, const T* own, const Matrix<T>& all,
                  comm::Purpose purpose) const;

  /// out [n,w] = the ranks' sum of partial + bias + addend [n,w] on every rank. out may be partial
  /// or addend.
  void all_reduce(const Execution& exec, const Matrix<T>& partial, const T* bias, const T* addend,
                  const Matrix<T>& out) const;

  /// Every rank's [count] one behind the other in `all`; the own one is in its place there.
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
