// The embedding: the row of each token, and of its position if positions are learned.
#pragma once

#include "kernels/embedding.hpp"
#include "model/cached_rows.hpp"
#include "model/context.hpp"
#include "model/messages.hpp"
#include "model/parameters.hpp"

namespace kzero::model {

/// The tokens and documents of a micro-batch, and what is dropped of its embedding.
struct EmbeddingBatch {
  kernels::Documents documents{};
  kernels::Dropout dropout{};
};

/// The tables' places in their unit. The table of tokens [V of this rank,D] comes first: a tied
/// head reads it, too.
class Embedding {
 public:
  explicit Embedding(Declaration& unit);

  /// Computes x [n,D], a chunk's local rows of the residual stream, from its tokens [N]. Collective
  /// over the tensor group.
  template <class T>
  void forward(const Context<T>& c, const T* unit, Vector<const Token> tokens,
               const EmbeddingBatch& batch, Matrix<T> x) const;

  /// Computes the tables' gradients (=|+=) from dx [n,D], which it may overwrite. `groups` are
  /// the chunk's tokens.
  template <class T>
  void backward(const Context<T>& c, T* gradients, const kernels::TokenGroups& groups,
                const EmbeddingBatch& batch, Matrix<T> dx, tensor::Accumulate accumulate) const;

  /// Computes x [R,D] from the tokens of a pass of generation. Collective over the tensor group.
  template <class T>
  void step(const CachedRows<T>& rows, const T* unit, Vector<const Token> tokens,
            Matrix<T> x) const;

  Work forward_work(const PassShape& pass) const;
  Work backward_work(const PassShape& pass) const;

 private:
  template <class U>
  Matrix<U> tokens_in(U* unit) const {
    return {unit, static_cast<std::size_t>(shape_->own.vocab),
            static_cast<std::size_t>(shape_->hidden)};
  }
  template <class U>
  Matrix<U> positions_in(U* unit) const {
    return {unit + positions_, static_cast<std::size_t>(shape_->sequence),
            static_cast<std::size_t>(shape_->hidden)};
  }
  bool is_learned() const { return shape_->positions == PositionKind::learned; }
  template <class T>
  void scale(const Execution& exec, const Matrix<T>& x) const;
  template <class T>
  void drop(const Context<T>& c, const EmbeddingBatch& batch, const Matrix<T>& x) const;

  const TransformerShape* shape_;
  Index positions_ = 0;  // where the table of positions begins
};

}  // namespace kzero::model
