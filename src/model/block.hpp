// One transformer block: a list of halves. Each adds to the residual stream. The block knows
// nothing of ZeRO stages or memory ownership.
#pragma once

#include <memory>
#include <vector>

#include "model/half.hpp"

namespace kzero::model {

/// A block's activations need only be the input x [n,D] of its first half and what its halves keep.
template <class T>
class Block {
 public:
  /// Declares the parameters of its halves. The declaration's shape must outlive it.
  Block(Declaration& block, const deck::Model& model, Index tile_rows = 0);

  ScratchNeeds scratch(const BatchShape& batch) const;
  /// Allocates the activations.
  void keep(Activations& memory, const BatchShape& batch, deck::RecomputeMode mode);

  /// Computes out [n,D] from x [n,D]. out may be x's memory. Collective over the tensor group and
  /// the sequence group, as the other passes are.
  void forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> out);

  /// Computes the activations again that the block does not keep. The results are bitwise equal to
  /// forward's.
  void recompute(const BlockPass<T>& pass, Matrix<const T> x);

  /// Runs backward. dx holds the gradient of the block's output on entry, and that of its input on
  /// return. Parameter gradients are overwritten or added to, as `accumulate` selects. Without
  /// `needs_input`, for a block before which nothing trains, backward ends at its first parameters
  /// that train, and dx has no meaning on return.
  void backward(const BlockPass<T>& pass, Matrix<const T> x,
                std::span<const BlockUnits<T>> gradients, tensor::Accumulate accumulate,
                Matrix<T> dx, bool needs_input = true);

  /// Allocates what generation needs, and runs rows through the block: see Half.
  void cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
             Index rows);
  void clear_cache(const Execution& exec);
  /// Runs rows x [R,D] through the block. x refers to the result on return, and `other` to scratch
  /// memory; the two may have changed places.
  void step(const CachedRows<T>& rows, const T* unit, Matrix<T>& x, Matrix<T>& other);

  /// Sums over the halves.
  Work forward_work(const PassShape& pass) const;
  Work recompute_work(const PassShape& pass, deck::RecomputeMode mode) const;
  Work backward_work(const PassShape& pass, bool needs_input) const;
  double recomputed_in_backward(deck::RecomputeMode mode) const;

 private:
  /// The input of half i.
  Matrix<const T> input(std::size_t i, Matrix<const T> x) const {
    return i == 0 ? x : between_[i - 1];
  }
  /// Whether anything before half i trains: in the block, or as `before_block` says.
  bool trains_before(std::size_t i, bool before_block) const;
  bool norms_sum_biases(const BlockDropout& dropout) const;

  const TransformerShape& shape_;
  std::vector<std::unique_ptr<Half<T>>> halves_;
  std::vector<Matrix<T>> between_;  // [n,D]: the results of all halves but the last
};

}  // namespace kzero::model
