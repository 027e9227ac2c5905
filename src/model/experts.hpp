// The feed-forward half of a block as a mixture of experts (Shazeer et al., arXiv 1701.06538): x +
// sum of gate_e * down_e(activation(up_e(norm(x)))) over the k experts that a router chooses for
// each row. Every choice is computed: there is no capacity, and no row is dropped. A row's result
// does not depend on the other rows of its experts (kernels/expert_products.hpp), and adds them in
// the order of its choices. The tensor group splits the columns of every expert; every rank routes
// all rows.
#pragma once

#include <vector>

#include "kernels/expert_products.hpp"
#include "kernels/routing.hpp"
#include "model/shared_expert.hpp"

namespace kzero::model {

/// f are this tensor rank's columns of an expert's activation, n its rows of the residual stream,
/// and M the sorted rows of a chunk: see kernels/routing.hpp.
template <class T>
class Experts : public Half<T> {
 public:
  explicit Experts(Declaration& block);

  Kept kept(deck::RecomputeMode mode) const override;
  ScratchNeeds scratch(const BatchShape& batch) const override;
  void keep(Activations& memory, const BatchShape& batch, Kept kept) override;

  void forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  void recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) override;
  bool backward(const BlockPass<T>& pass, Matrix<const T> x,
                const HalfGradients<T>& gradients) override;
  Matrix<T> free_after_backward() const override { return normal_; }

  void cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
             Index rows) override;
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) override;

  const Linear<T>& output() const override { return down_; }
  bool trains() const override { return !shape_.is_frozen(); }
  Work forward_work(const PassShape& pass) const override;
  Work recompute_work(const PassShape& pass, Kept kept, bool is_last) const override;
  Work backward_work(const PassShape& pass, bool needs_input) const override;
  double recomputed_in_backward(Kept /*kept*/) const override { return 0; }

 private:
  /// The choices of a chunk's rows, and each expert's sorted rows.
  struct Routing {
    Matrix<float> logits;  // [N,E], or [N,E+1] with the shared expert's
    kernels::Choices choices;
    kernels::SortedChoices sorted;
    // On the host.
    std::vector<std::int32_t> begin;   // [E+1]
    std::vector<std::int32_t> counts;  // [E]: rows to compute, which may include padding

    Index rows() const { return begin.back(); }
    /// [N,1], or empty: the shared expert has no gate.
    Matrix<const float> shared_gates() const {
      const std::size_t count = choices.shared.size();
      return count > 0 ? Matrix<const float>(choices.shared.data(), count, 1)
                       : Matrix<const float>();
    }
  };

  void take_routing(Activations& memory, bool is_kept, Index chunks, Index rows);
  Matrix<T> sorted_rows(const Matrix<T>& all, Index chunk) const;
  void multiply(const Execution& exec, tensor::Gemm& gemm, const Linear<T>& layer,
                const Routing& routing, const T* unit, tensor::Transpose transpose,
                Matrix<const T> x, Matrix<T> y);
  void backward_weights(const Context<T>& c, const Linear<T>& layer, const Routing& routing,
                        Matrix<const T> x, Matrix<const T> dy, const LayerGradients<T>& g);
  Matrix<const T> router(const T* unit) const;
  Matrix<T> shared_rows(const Context<T>& c) const;
  const T* bias(const T* unit) const { return bias_ < 0 ? nullptr : unit + bias_; }
  kernels::Scoring scoring() const;
  kernels::CountedRows counted(const BlockPass<T>& pass, const Context<T>& c,
                               const PartRows& rows) const;

  void route(const Context<T>& c, const T* unit, Matrix<const T> normal, Routing& routing) const;
  void count(const BlockPass<T>& pass, const Context<T>& c, const PartRows& rows,
             const Routing& routing) const;
  void fill(const BlockPass<T>& pass, const Context<T>& c, const PartRows& rows, Index chunk);
  void combine(const BlockPass<T>& pass, const Context<T>& c, Index chunk, Matrix<const T> x,
               Matrix<T> y);

  void hidden_backward(const BlockPass<T>& pass, const Context<T>& c, Index chunk,
                       Matrix<const T> dout, const LayerGradients<T>& g);
  Matrix<T> shared_gradient(const Context<T>& c) const;
  void input_backward(const BlockPass<T>& pass, const Context<T>& c, Index chunk,
                      Matrix<const T> normal, const LayerGradients<T>& g);
  float* gate_gradients(const Context<T>& c, const Routing& routing) const;
  void sum_gate_gradients(const Context<T>& c, const Routing& routing) const;
  void router_backward(const BlockPass<T>& pass, const Context<T>& c, const PartRows& rows,
                       Index chunk, Matrix<const T> normal, const LayerGradients<T>& g) const;

  Routing& route(const CachedRows<T>& rows, const T* unit, Matrix<const T> normal);
  double router_operations() const;

  const TransformerShape& shape_;
  HalfNorm<T> norm_;
  Index router_;     // where its weight [E,D] begins in the unit
  Index bias_ = -1;  // and its bias [E]; -1: it has none
  SharedExpert<T> shared_;
  Linear<T> up_, down_;  // of the first expert
  Index stride_;         // from an expert's parameters to those of the next one

  // Activations.
  Index capacity_ = 0;            // the most sorted rows of a chunk
  Matrix<T> normal_;              // [n,D]
  NormStatistics statistics_;     // [n]
  std::vector<Routing> routing_;  // of each chunk
  Matrix<T> hidden_, activated_;  // [chunks * capacity, 2f] [chunks * capacity, f]
  Matrix<T> sorted_;              // [capacity, D], of generation, and rows of the shared expert
  Vector<std::int32_t> counts_;   // [E], of generation
  std::vector<kernels::ExpertRows<const T>> weights_;  // [E], of one product
  std::vector<kernels::ExpertRows<T>> gradients_;      // [E]
  Kept kept_ = Kept::all;
};

}  // namespace kzero::model
