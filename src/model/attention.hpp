// The attention half of a block: x + projection(attention(q, k, v)), with q, k and v from norm(x).
// GPT-2 has learned positions and biases. The Llama family rotates q and k, shares heads of k and v
// and may normalise q and k. In some layers a token may see a window of the tokens before it. The
// tensor group splits the heads.
#pragma once

#include "kernels/all_heads_norm.hpp"
#include "kernels/rotary.hpp"
#include "model/half.hpp"
#include "model/half_end.hpp"

namespace kzero::model {

/// This tensor rank has H heads, d columns of q, e columns each of k and v, and n rows of the
/// residual stream. Rotary positions rotate qkv in place, except after norms of q and k, whose
/// backward needs their input. With s sequence ranks, attention's operands and result of this
/// rank's heads are kept instead of qkv, which is kept for the norms of q and k only.
template <class T>
class Attention : public Half<T> {
 public:
  Attention(Declaration& block, const deck::Model& model);

  Kept kept(deck::RecomputeMode mode) const override;
  ScratchNeeds scratch(const BatchShape& batch) const override;
  void keep(Activations& memory, const BatchShape& batch, Kept kept) override;

  void forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  bool backward(const BlockPass<T>& pass, Matrix<const T> x,
                const HalfGradients<T>& gradients) override;

  void cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
             Index rows) override;
  void clear_cache(const Execution& exec) override;
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) override;

  const Linear<T>& output() const override { return projection(); }
  bool trains() const override { return qkv_.trains() || projection().trains(); }
  Work forward_work(const PassShape& pass) const override;
  Work recompute_work(const PassShape& pass, Kept kept, bool is_last) const override;
  Work backward_work(const PassShape& pass, bool needs_input) const override;
  double recomputed_in_backward(Kept kept) const override;

 private:
  kernels::AttentionProblem problem(const BatchShape& batch) const;
  double attention_operations() const;
  kernels::RotaryShape rotary_shape(const Context<T>& c) const;
  kernels::HeadNorms<T> head_norms(const T* unit) const;

  Matrix<T> qkv_rows(const Context<T>& c) const;
  Matrix<T> rotated_rows(const Context<T>& c) const;
  kernels::HeadOperands<const T> operands() const;
  kernels::AttentionRows attention_rows(const BlockPass<T>& pass) const;
  const kernels::AttentionBackend<T>& backend(const Context<T>& c) const {
    return *c.attention_for(problem_).backend;
  }

  const Linear<T>& projection() const { return end_.product(); }
  kernels::AllHeadsShape all_heads() const;
  template <class U>
  Vector<U> all_heads_weights(U* unit) const;
  Matrix<const float> rotary_in(const Matrix<const float>& tables) const;

  void rotate(const Context<T>& c, const BlockPass<T>& pass, Matrix<const T> qkv,
              Matrix<const float> squares, Matrix<T> rotated) const;
  void fill(const BlockPass<T>& pass, Matrix<const T> x) const;
  void finish(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) const;
  void attention_backward(const BlockPass<T>& pass, Matrix<T> dattention) const;
  void rotate_backward(const Context<T>& c, const BlockPass<T>& pass, const PartRows& rows,
                       Matrix<T> dqkv, const LayerGradients<T>& g) const;
  void all_heads_backward(const Context<T>& c, const BlockPass<T>& pass, const PartRows& rows,
                          Matrix<T> dqkv, const LayerGradients<T>& g) const;
  void qkv_backward(const Context<T>& c, const BlockPass<T>& pass, const PartRows& rows,
                    Matrix<const T> x, const LayerGradients<T>& g, bool needs_input) const;
  kernels::HeadOperands<const T> step_heads(const CachedRows<T>& rows, const T* unit,
                                            Matrix<T> qkv) const;
  void add_forward_messages(Messages& messages) const;

  const TransformerShape& shape_;
  bool drops_weights_;
  Index window_;        // keys that a query sees; 0: all up to its own
  bool rotates_;        // q and k, by their positions
  bool rotates_apart_;  // by the second table
  HalfNorm<T> norm_;
  Linear<T> qkv_;
  Index head_norms_ = 0;  // where the weights of q's norm begin in the unit, then those of k's
  HalfEnd<T> end_;

  // Activations.
  Matrix<T> normal_;                       // [n,D]
  NormStatistics statistics_;              // [n]
  Matrix<T> qkv_out_, attention_;          // [N,d+2e] [N,d]
  Matrix<T> rotated_;                      // [N,d+e]: q and k after their norms, or empty
  Matrix<float> squares_, dots_;           // [N,2] of norms over all heads
  EndSaved<T> end_saved_;                  // [n,D]
  Matrix<T> heads_qkv_, heads_attention_;  // [B*T,(d+2e)/s] [B*T,d/s], or empty
  Matrix<float> log_sum_;                  // [B*H/s,T]
  Kept kept_ = Kept::all;
  kernels::AttentionProblem problem_{};

  kernels::KeyValueCache<T> cache_{};  // of generation
  kernels::CacheShape cache_shape_{};
  Matrix<float> rank_squares_;  // [ranks * R,2] of norms over all heads
};

}  // namespace kzero::model
