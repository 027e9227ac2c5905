// The residual stream [n,D] between units, and how the input of each block is kept for its
// backward: where it was written; partitioned over the tensor group, each rank keeping its rows
// (P_a of arXiv 1910.02054, section 6.1); or in host memory, partitioned or not (P_a+cpu). In the
// latter cases one buffer serves all blocks, or two in turn if copies overlap with kernels.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/tensor_group.hpp"
#include "model/transformer_shape.hpp"
#include "runtime/event.hpp"

namespace kzero::model {

/// The number of buffers between which an offloaded stream alternates: with two, a block computes
/// in one while the other is copied. Hosts copy synchronously.
inline constexpr Index offload_places = tensor::on_host ? 1 : 2;

template <class T>
class ResidualStream {
 public:
  /// Takes memory: inputs that are kept while their blocks are recomputed are in category
  /// recompute, or in offloaded if the deck offloads them; all other buffers in activations. `rows`
  /// are the local rows of the residual stream. The group must outlive this.
  ResidualStream(memory::Arenas& arenas, const TransformerShape& shape,
                 const deck::Recompute& recompute, Index rows, const TensorGroup<T>& group,
                 Index places = offload_places);

  /// Takes one buffer for all blocks, which keeps no input: for forward passes alone.
  ResidualStream(memory::Arenas& arenas, const TransformerShape& shape, Index rows,
                 const TensorGroup<T>& group);

  /// The buffer from which block i, or for i = L the head, reads its input; at(i + 1), to which
  /// block i writes, may be the same memory.
  const Matrix<T>& at(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  /// Prepares at(0) for the embedding, which writes it. After a forward pass without backward, as
  /// validation makes them, what lay there may still be on its way to the host.
  void begin(const Execution& exec) const;

  /// Prepares block i's forward. Call it in the order of blocks.
  void keep(const Execution& exec, Index i);

  /// Restores at(i), the input of block i, for its backward. Call it in reverse order. Collective
  /// over the tensor group.
  void restore(const Execution& exec, Index i);

 private:
  /// Copies that overlap with kernels, and which of them have completed, by buffer.
  struct Copies {
    tensor::Execution exec = runtime::make_stream();
    runtime::Event ready;
    std::array<runtime::Event, 2> ended;
    Index arriving = -1;  // the block whose input is being copied to the device
  };

  Matrix<T> own_part(Index i) const;
  runtime::Event& ended(Index i) { return copies_->ended[static_cast<std::size_t>(i % turns_)]; }
  /// Copies block i's input once the work enqueued on `exec` is done.
  template <class To, class From>
  void copy(const Execution& exec, Index i, const To& to, const From& from);
  void fetch(const Execution& exec, Index i);

  const TensorGroup<T>& group_;
  Index first_row_ = 0, own_rows_ = 0;  // of the rows that this rank keeps
  bool is_cut_ = false;
  Index turns_ = 1;
  std::optional<Copies> copies_;                // to and from the host, or none
  std::vector<Matrix<T>> places_;               // of L + 1
  std::vector<Matrix<T>> kept_;                 // of L, or none
  std::vector<tensor::HostMatrix<T>> on_host_;  // of L, or none
};

}  // namespace kzero::model
