// The residual stream [n,D] between units, and how the input of each block waits for its backward:
// where it was written; cut over the tensor group, of which each rank keeps its rows (P_a of arXiv
// 1910.02054, section 6.1); or in host memory, cut or not (P_a+cpu). In the latter cases one place
// serves all blocks, or two in turn where copies move beside the kernels.
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "model/gpt_spec.hpp"
#include "model/tensor_group.hpp"
#include "runtime/event.hpp"

namespace kzero::model {

/// Places in which an offloaded stream lies in turn: with two, a block computes in one while the
/// other is copied from or to. Hosts copy at once.
inline constexpr Index offload_places = tensor::on_host ? 1 : 2;

template <class T>
class ResidualStream {
 public:
  /// Inputs that are kept while the rest of their blocks is computed again are in category
  /// recompute, or where the deck offloads them in offloaded; all other places in activations.
  /// `rows` are the stream's. The group must outlive this.
  ResidualStream(memory::Arenas& arenas, const GptShape& shape, const deck::Recompute& recompute,
                 Index rows, const TensorGroup<T>& group, Index places = offload_places);

  /// Where block i reads its input, and for i = L the head; at(i + 1), where block i writes, may be
  /// the same memory.
  const Matrix<T>& at(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  /// Call before block i runs forward, in the order of blocks.
  void keep(const Execution& exec, Index i);

  /// Call before block i runs backward, in reverse order: at(i) is its input again. Collective over
  /// the tensor group.
  void restore(const Execution& exec, Index i);

 private:
  /// Copies that move beside the kernels, and which of them have ended, by place.
  struct Copies {
    tensor::Execution stream = runtime::make_stream();
    runtime::Event ready;
    std::array<runtime::Event, 2> ended;
    Index arriving = -1;  // the block whose input is on its way to the device
  };

  Matrix<T> own_part(Index i) const;
  runtime::Event& ended(Index i) { return copies_->ended[static_cast<std::size_t>(i % turns_)]; }
  /// Copies block i's input once `exec` has come as far as it is enqueued.
  template <class To, class From>
  void copy(const Execution& exec, Index i, const To& to, const From& from);
  void fetch(const Execution& exec, Index i);

  const TensorGroup<T>& group_;
  Index first_row_ = 0, own_rows_ = 0;  // of what this rank keeps
  bool is_cut_ = false;
  Index turns_ = 1;
  std::optional<Copies> copies_;                // to and from the host, or none
  std::vector<Matrix<T>> places_;               // of L + 1
  std::vector<Matrix<T>> kept_;                 // of L, or none
  std::vector<tensor::HostMatrix<T>> on_host_;  // of L, or none
};

}  // namespace kzero::model
