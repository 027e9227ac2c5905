// The output: final norm, projection to the vocabulary and cross-entropy. Slices of logits fill a
// chunk of their gradients, which is consumed before the next chunk is computed.
#pragma once

#include "kernels/distillation.hpp"
#include "kernels/row_sums.hpp"
#include "kernels/softmax_cross_entropy.hpp"
#include "kernels/top_tokens.hpp"
#include "model/messages.hpp"
#include "model/norm.hpp"

namespace kzero::model {

template <class T>
struct HeadSaved {
  Matrix<T> normal;  // [n,D]: local rows of the residual stream
  NormStatistics statistics;

  HeadSaved(memory::Arenas& arenas, const TransformerShape& shape, Index batch);
  HeadSaved(const Matrix<T>& rows, const NormStatistics& of_rows)
      : normal(rows), statistics(of_rows) {}
};

template <class T>
struct HeadParams {
  NormParams<T> norm;
  // [V of this rank,D]: the embedding table if tied. As a parameter on a device, it is followed by
  // read_after_output() elements that are read.
  Matrix<T> output;
};

/// The head's place in its unit: the final norm, then the output projection unless that is the
/// embedding's table.
class Head {
 public:
  explicit Head(Declaration& unit);

  /// The parameters in the flat units of the embedding and of the head.
  template <class U>
  HeadParams<U> in(U* embedding, U* own) const {
    U* const output = shape_->tied_embeddings ? embedding : own + output_;
    NormParams<U> norm = norm_at(*shape_, own);
    norm.factor = shape_->logit_scale;
    return {norm, Matrix<U>(output, static_cast<std::size_t>(shape_->own.vocab),
                            static_cast<std::size_t>(shape_->hidden))};
  }

  /// Of the loss, and of its gradient.
  Work forward_work(const PassShape& pass) const;
  Work backward_work(const PassShape& pass) const;
  /// In addition, beside a teacher.
  Work distillation_work(const PassShape& pass) const;

 private:
  const TransformerShape* shape_;
  Index output_ = 0;
};

/// Computes the losses [N] of the micro-batch from x [n,D] into c.losses.
template <class T>
void head_forward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                  Vector<const Token> targets, const HeadSaved<T>& saved);

/// As head_forward(). Also computes the most probable tokens of each row [N,top].
template <class T>
void head_top_tokens(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                     Vector<const Token> targets, const HeadSaved<T>& saved,
                     const kernels::TopTokens& top);

/// The loss of the head's rows [N]; with a teacher also KL, into c.kl.
struct HeadLoss {
  kernels::LossTerms terms;
  kernels::TeacherRows teacher{};

  /// Of `count` rows from `first` on.
  HeadLoss of_rows(Index first, Index count) const;
};

/// Also computes the gradient of the loss that `loss` describes. Overwrites dx [n,D]. Overwrites or
/// adds to parameter gradients, as `accumulate` selects. Each gradient is rounded once. Those of a
/// frozen head are empty.
template <class T>
void head_forward_backward(const Context<T>& c, const HeadParams<const T>& p, Matrix<const T> x,
                           Vector<const Token> targets, const HeadLoss& loss,
                           const HeadSaved<T>& saved, tensor::Accumulate accumulate,
                           const HeadParams<T>& gradients, Matrix<T> dx);

}  // namespace kzero::model
