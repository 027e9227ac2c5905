// A block is a list of halves, y = x + f(x): attention is one, and the feed-forward part another. A
// half states everything about itself: its parameters, the activations that it keeps, its passes,
// its rows in generation, and its work. Nothing else does.
#pragma once

#include <cstdint>

#include "model/activations.hpp"
#include "model/linear.hpp"
#include "model/norm.hpp"

namespace kzero::model {

/// What a router needs of a micro-batch in addition to its rows.
struct RouterPass {
  Vector<const Token> targets{};     // [N], of this rank
  float mean_scale = 0;              // factor on losses that are means over the micro-batch
  std::uint64_t* choices = nullptr;  // [E] to which forward adds each expert's; null: not counted
};

/// The micro-batch of a block on its way through a pass. It has the parameters of the block.
template <class T>
struct BlockPass {
  const Context<T>& c;
  BlockUnits<const T> parameters;
  kernels::Documents documents{};
  BlockDropout dropout{};
  RouterPass router{};
};

/// The gradients that the backward of a half computes.
template <class T>
struct HalfGradients {
  std::span<const BlockUnits<T>> of_chunks;  // of the block's parameters
  tensor::Accumulate accumulate = tensor::Accumulate::no;
  Matrix<T> dx;             // [n,D]: of the result on entry, of the input on return
  bool needs_input = true;  // false if nothing before the half trains: dx is not computed
  /// The norms of the block's backward also sum the gradients of the biases that its halves add to
  /// the residual stream: of this half, and with `before` of the half before it.
  bool norms_sum_biases = false;
  const Linear<T>* before = nullptr;
  Matrix<T> scratch{};  // [n,D] that no later half needs; without rows for the last half

  LayerGradients<T> of(Index chunk) const {
    return {of_chunks[static_cast<std::size_t>(chunk)], accumulate};
  }
};

template <class T>
class Half {
 public:
  Half() = default;
  Half(const Half&) = delete;
  Half& operator=(const Half&) = delete;
  virtual ~Half() = default;

  /// What the half keeps in a mode of recomputation.
  virtual Kept kept(deck::RecomputeMode mode) const = 0;
  /// The scratch memory of its passes.
  virtual ScratchNeeds scratch(const BatchShape& batch) const = 0;
  /// Allocates its activations for a micro-batch.
  virtual void keep(Activations& memory, const BatchShape& batch, Kept kept) = 0;

  /// Computes y [n,D] from x [n,D], and keeps what backward needs. y may be x. Collective over the
  /// tensor group and the sequence group, as the other passes are.
  virtual void forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) = 0;
  /// Computes again what the half does not keep, with forward's own kernels and masks, so that the
  /// bits are the same. Stops before the last product if y is empty.
  virtual void recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) = 0;
  /// Computes the gradients. Returns false if it ended on the way, because nothing before trains.
  virtual bool backward(const BlockPass<T>& pass, Matrix<const T> x,
                        const HalfGradients<T>& gradients) = 0;
  /// [n,D] of activations that nothing needs after the half's backward; without rows if it has
  /// none.
  virtual Matrix<T> free_after_backward() const { return {}; }

  /// Allocates the cache of generation, if it has one, and memory for passes of `rows` rows.
  virtual void cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
                     Index rows) = 0;
  /// Fills a new cache with zeros.
  virtual void clear_cache(const Execution& /*exec*/) {}
  /// Computes y [R,D] from x [R,D], rows of any sequences and positions. `unit` has the block's
  /// parameters. y differs from x. Collective over the tensor group.
  virtual void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) = 0;

  /// The layer that writes to the residual stream.
  virtual const Linear<T>& output() const = 0;
  /// Whether any of its parameters or adapters trains.
  virtual bool trains() const = 0;

  virtual Work forward_work(const PassShape& pass) const = 0;
  /// Of recompute(); `is_last`: in the block.
  virtual Work recompute_work(const PassShape& pass, Kept kept, bool is_last) const = 0;
  virtual Work backward_work(const PassShape& pass, bool needs_input) const = 0;
  /// Operations per token that backward itself computes again.
  virtual double recomputed_in_backward(Kept kept) const = 0;
};

}  // namespace kzero::model
