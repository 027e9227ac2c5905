// The feed-forward half of a block: x + down(activation(up(norm(x)))). It runs tile after tile of a
// chunk's rows. Weight gradients add up in fp32 over tiles. The tensor group splits the columns of
// the activation.
#pragma once

#include "model/half.hpp"
#include "model/half_end.hpp"

namespace kzero::model {

/// f are this tensor rank's columns of the activation, and n its rows of the residual stream. Up to
/// M rows are in memory: all, or those of one tile.
template <class T>
class FeedForward : public Half<T> {
 public:
  FeedForward(Declaration& block, Index tile_rows);

  Kept kept(deck::RecomputeMode mode) const override;
  ScratchNeeds scratch(const BatchShape& batch) const override;
  void keep(Activations& memory, const BatchShape& batch, Kept kept) override;

  void forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  bool backward(const BlockPass<T>& pass, Matrix<const T> x,
                const HalfGradients<T>& gradients) override;
  Matrix<T> free_after_backward() const override {
    return norm_.exists() ? normal_ : end_saved_.product;
  }

  void cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
             Index rows) override;
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) override;

  const Linear<T>& output() const override { return down(); }
  bool trains() const override { return up_.trains() || down().trains(); }
  Work forward_work(const PassShape& pass) const override;
  Work recompute_work(const PassShape& pass, Kept kept, bool is_last) const override;
  Work backward_work(const PassShape& pass, bool needs_input) const override;
  double recomputed_in_backward(Kept kept) const override;

 private:
  /// The rows of a tile in the half's input and in the activations in memory.
  struct Tile {
    Matrix<const T> x;
    Matrix<T> normal, hidden, activated;
    NormStatistics statistics;
    EndSaved<T> end;
  };
  Tile tile_of(Matrix<const T> x, const PartRows& chunk, const PartRows& tile) const;

  const Linear<T>& down() const { return end_.product(); }
  static constexpr Index scale_count = 2;  // of xIELU
  bool has_scales() const { return shape_.activation == ActivationKind::xielu; }
  Vector<const T> scales(const T* unit) const { return {unit + scales_, scale_count}; }
  void activate(const Execution& exec, const T* unit, const Matrix<T>& hidden,
                const Matrix<T>& activated) const;
  void activation_backward(const Context<T>& c, const BlockPass<T>& pass, const Tile& tile,
                           bool is_first, Matrix<T> dhidden) const;
  void store_activation_sums(const Context<T>& c, const LayerGradients<T>& g) const;
  void fill_tile(const Context<T>& c, const BlockUnits<const T>& p, const Tile& tile) const;
  LayerGradients<T> of_tile(const Context<T>& chunk, const LayerGradients<T>& g,
                            Index number) const;
  void hidden_backward(const Context<T>& c, const BlockPass<T>& pass, const Tile& tile,
                       Matrix<const T> dout, bool is_first, const LayerGradients<T>& g,
                       Matrix<T> dhidden) const;
  void tile_backward(const Context<T>& c, const BlockPass<T>& pass, const Tile& tile,
                     Matrix<const T> dout, bool is_first, const LayerGradients<T>& g,
                     bool needs_input) const;
  void store_sums(const Context<T>& c, const LayerGradients<T>& g) const;

  const TransformerShape& shape_;
  Index tile_rows_;  // train.tile_rows
  HalfNorm<T> norm_;
  Index scales_ = 0;  // where xIELU's scales begin in the unit
  Linear<T> up_;
  HalfEnd<T> end_;
  Index adapter_elements_;  // of the block up to this half

  // Activations.
  Matrix<T> normal_;              // [n or M,D]
  NormStatistics statistics_;     // [n]
  Matrix<T> hidden_, activated_;  // [M,f or 2f] [M,f]
  EndSaved<T> end_saved_;         // [n,D]
  Kept kept_ = Kept::all;
  bool has_one_tile_ = false;  // the activations in memory are those of one tile
};

}  // namespace kzero::model
