// The residual stream [n,D] between units. The input of each block is kept for backward in one of
// three ways: where it was written; partitioned over the tensor group (P_a of arXiv 1910.02054,
// section 6.1); or in host memory, partitioned or not (P_a+cpu). In the last two cases all blocks
// share one buffer, or two if copies overlap with kernels.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/shape.hpp"
#include "model/tensor_group.hpp"
#include "runtime/event.hpp"

namespace kzero::model {

/// The number of buffers that an offloaded stream alternates between. With two, a block computes in
/// one while the other is copied. Hosts copy synchronously.
inline constexpr Index offload_places = tensor::on_host ? 1 : 2;

template <class T>
class ResidualStream {
 public:
  /// Allocates memory for `rows` local rows of the residual stream. Inputs that are kept while
  /// their blocks are recomputed are in category recompute, or in offloaded if the deck offloads
  /// them. All other buffers are in activations. The group must outlive this object.
  ResidualStream(memory::Arenas& arenas, const TransformerShape& shape,
                 const deck::Recompute& recompute, Index rows, const TensorGroup<T>& group,
                 Index places = offload_places);

  /// Allocates one buffer for all blocks and keeps no input. For forward passes only.
  ResidualStream(memory::Arenas& arenas, const TransformerShape& shape, Index rows,
                 const TensorGroup<T>& group);

  /// The buffer from which block i, or the head for i = L, reads its input. Block i writes to at(i
  /// + 1), which may be the same memory.
  const Matrix<T>& at(Index i) const { return places_[i]; }

  /// Prepares at(0), which the embedding overwrites. After a forward pass without backward, as in
  /// validation, its old contents may still be on the way to the host.
  void begin(const Execution& exec) const;

  /// Prepares the forward pass of block i. Call it in the order of the blocks.
  void keep(const Execution& exec, Index i);

  /// Restores at(i), the input of block i, for backward. Call it in reverse order. Collective over
  /// the tensor group.
  void restore(const Execution& exec, Index i);

 private:
  /// The copies that overlap with kernels, with a completion event per buffer.
  struct Copies {
    tensor::Execution exec = runtime::make_stream();
    runtime::Event ready;
    std::array<runtime::Event, 2> ended;
    Index arriving = -1;  // the block whose input is being copied to the device
  };

  Matrix<T> own_part(Index i) const;
  runtime::Event& ended(Index i) { return copies_->ended[i % turns_]; }
  /// Copies block i's input after the work enqueued on `exec` so far.
  template <class To, class From>
  void copy(const Execution& exec, Index i, const To& to, const From& from);
  void fetch(const Execution& exec, Index i);

  const TensorGroup<T>& group_;
  Index first_row_ = 0, own_rows_ = 0;  // rows that this rank keeps
  bool is_cut_ = false;
  Index turns_ = 1;
  std::optional<Copies> copies_;                // to and from the host, or none
  std::vector<Matrix<T>> places_;               // L + 1
  std::vector<Matrix<T>> kept_;                 // L, or none
  std::vector<tensor::HostMatrix<T>> on_host_;  // L, or none
};

}  // namespace kzero::model
