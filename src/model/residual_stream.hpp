// The residual stream [N,D] between units, and how the input of each block waits for its backward:
// where it was written, or moved to host memory, so that one place serves all blocks (P_a+cpu of
// arXiv 1910.02054, section 6.1, without partitioning).
#pragma once

#include <vector>

#include "deck/config.hpp"
#include "memory/arenas.hpp"
#include "model/gpt_spec.hpp"
#include "tensor/view.hpp"

namespace kzero::model {

template <class T>
class ResidualStream {
 public:
  /// Inputs that are kept while the rest of their blocks is computed again are in category
  /// recompute, or where the deck offloads them in offloaded; all other places in activations.
  ResidualStream(memory::Arenas& arenas, const GptShape& shape, const deck::Recompute& recompute,
                 Index rows);

  /// Where block i reads its input, and for i = L the head; at(i + 1), where block i writes, may be
  /// the same memory.
  const tensor::Matrix<T>& at(Index i) const { return places_[static_cast<std::size_t>(i)]; }

  /// Call before block i runs forward.
  void keep(const tensor::Execution& exec, Index i) const;

  /// Call before block i runs backward: at(i) is its input again.
  void restore(const tensor::Execution& exec, Index i) const;

 private:
  std::vector<tensor::Matrix<T>> places_;       // of L + 1
  std::vector<tensor::HostMatrix<T>> on_host_;  // of L, or none
};

}  // namespace kzero::model
