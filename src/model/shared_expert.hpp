// The expert that computes every row beside those that a router chooses: gate *
// down(swiglu(up(x))), where the gate is 1 or the sigmoid of a product with x (Qwen2-MoE;
// DeepSeekMoE, arXiv 2401.06066). The tensor group splits its columns.
#pragma once

#include "model/half.hpp"

namespace kzero::model {

/// f are this tensor rank's columns of the activation, N the rows of a chunk. Every function but
/// keep() and cache() is for one chunk. The gate's logit is computed with those of the router.
template <class T>
class SharedExpert {
 public:
  /// Declares its layers, if the shape has a shared expert.
  explicit SharedExpert(Declaration& block);

  bool exists() const { return up_.out() > 0; }
  Index hidden_columns() const { return up_.out(); }   // 2f
  Index active_columns() const { return down_.in(); }  // f

  /// Takes activations for chunks of `rows` rows, which are kept if `products` and `passes` say so.
  void keep(Activations& memory, bool products, bool passes, Index chunks, Index rows);

  /// Computes the activation from all rows of the norm's result [N,D], or again from the hidden
  /// columns.
  void fill(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> normal, Index chunk);
  void activate(const Execution& exec, Index chunk);

  /// Computes y [N,D], this tensor rank's part of the result, without the gate.
  void forward(const Context<T>& c, const BlockUnits<const T>& p, Index chunk, Matrix<T> y) const;

  /// Computes dhidden [N,2f] and the gradients of the last layer from that of the half's result,
  /// dout [N,D], and of the gates this rank's part, dgates [N,1]. Without gates both are empty.
  void hidden_backward(const Context<T>& c, const BlockUnits<const T>& p, Index chunk,
                       Matrix<const T> dout, Matrix<const float> gates, Matrix<float> dgates,
                       const LayerGradients<T>& g, Matrix<T> dhidden);
  /// Computes the gradients of the first layer, and of the norm's result this rank's part, dx
  /// [N,D].
  void input_backward(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> normal,
                      Matrix<const T> dhidden, const LayerGradients<T>& g, Matrix<T> dx) const;

  /// Takes memory for passes of `rows` rows of generation, and computes the same as fill() and
  /// forward().
  void cache(Activations& shared, Index rows);
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> normal, Matrix<T> y) const;

  /// Operations a row.
  double up_operations() const { return exists() ? up_.forward_operations() : 0; }
  double forward_operations() const {
    return exists() ? up_.forward_operations() + down_.forward_operations() : 0;
  }
  double backward_operations() const {
    return exists() ? up_.backward_operations(true) + down_.backward_operations(true) : 0;
  }

 private:
  Matrix<T> of_chunk(const Matrix<T>& all, Index chunk) const {
    return {all.data() + chunk * rows_ * static_cast<Index>(all.extent(1)),
            static_cast<std::size_t>(rows_), all.extent(1)};
  }

  Linear<T> up_, down_;
  Index rows_ = 0;                // of a chunk
  Matrix<T> hidden_, activated_;  // [chunks * N, 2f] [chunks * N, f]
};

}  // namespace kzero::model
