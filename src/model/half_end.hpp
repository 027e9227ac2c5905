// The end of a half: its last product, and how the result joins the residual stream. Most families
// add the product itself, y = x + in W + b, with dropout or a factor if the deck has them. OLMo 2
// and Gemma 3 add its norm.
#pragma once

#include "model/linear.hpp"
#include "model/norm.hpp"

namespace kzero::model {

/// What backward needs of the end of a half that has a norm: the product's result [n,D], and the
/// statistics of its rows. Empty without a norm.
template <class T>
struct EndSaved {
  Matrix<T> product;
  NormStatistics statistics;

  EndSaved of(const PartRows& rows) const { return {rows.of(product), statistics.of(rows)}; }
};

template <class T>
class HalfEnd {
 public:
  /// Declares the product's layers, then the norm, unless its name is empty.
  HalfEnd(Declaration& block, deck::Product product, std::string_view norm_name);

  const Linear<T>& product() const { return product_; }
  bool has_norm() const { return norm_.exists(); }
  /// Whether what the half adds differs from the product, so that the gradient of the product needs
  /// memory of its own.
  bool adds_apart() const { return adds_apart_; }

  /// Takes activations from memory, under these names. `is_kept`: the product's result.
  EndSaved<T> take(Activations& memory, bool is_kept, const char* name, const char* rstd_name,
                   Index rows) const;

  /// Computes y [n,D] = x [n,D] + what the half adds, from the product's input `in` [N,in]. If y is
  /// empty, computes only the product's result, for backward. y may be x. Collective over the
  /// tensor group, as the other passes are.
  void forward(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> in,
               const kernels::Dropout& dropout, const EndSaved<T>& saved, Matrix<const T> x,
               Matrix<T> y) const;

  /// Returns all rows of the gradient of the product's result, from that of the half's result, dx
  /// [n,D]. They may be in `scratch` [n,D]. Computes the gradient of the norm's weight.
  Matrix<const T> backward(const Context<T>& c, const BlockUnits<const T>& p,
                           const kernels::Dropout& dropout, const EndSaved<T>& saved,
                           Matrix<const T> dx, Matrix<T> scratch, const LayerGradients<T>& g) const;

  /// forward() for the rows of a pass of generation.
  void step(const CachedRows<T>& rows, const T* unit, Matrix<const T> in, const EndSaved<T>& saved,
            Matrix<const T> x, Matrix<T> y) const;

  /// Adds the messages of backward.
  void add_backward_messages(Messages& messages) const;

 private:
  const TransformerShape& shape_;
  bool adds_apart_;
  Linear<T> product_;
  HalfNorm<T> norm_;
};

}  // namespace kzero::model
