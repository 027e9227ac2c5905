#include "model/embedding.hpp"

#include "kernels/dropout.hpp"
#include "kernels/initialize.hpp"
#include "kernels/scale.hpp"

namespace kzero::model {

Embedding::Embedding(Declaration& d) : shape_(&d.shape) {
  const ParameterNames& names = d.family.names;
  const TransformerShape& s = d.shape;
  d.own.add(split_by_rows(std::string(names.tokens), d.extents.vocab, s.hidden, d.std));
  if (is_learned())
    positions_ = d.own.add(matrix_spec(std::string(names.positions), s.sequence, s.hidden, d.std));
}

/// Multiplies x, or its gradient, by the factor on embeddings.
template <class T>
void Embedding::scale(const Execution& exec, const Matrix<T>& x) const {
  if (shape_->embedding_scale != 1)
    kernels::scale_by<T>(exec, shape_->embedding_scale, Vector<T>(x.data(), x.size()));
}

/// Drops elements of x [n,D], or of its gradient, if the family's embedding has dropout.
template <class T>
void Embedding::drop(const Context<T>& c, const EmbeddingBatch& batch, const Matrix<T>& x) const {
  if (shape_->drops_embedding && batch.dropout.is_on())
    kernels::drop<T>(*c.exec, batch.dropout, c.stream_in_sequence(), x, x);
}

template <class T>
void Embedding::forward(const Context<T>& c, const T* unit, Vector<const Token> tokens,
                        const EmbeddingBatch& batch, Matrix<T> x) const {
  const Matrix<const T> table = tokens_in(unit);
  const kernels::StreamRows stream = c.stream_in_sequence();
  if (!c.is_split() && is_learned()) {
    kernels::embedding_forward<T>(*c.exec, tokens, table, positions_in(unit), stream,
                                  batch.documents, x);
  } else {
    // One rank supplies a token's row and the others supply zeros, so the sum is exact.
    const Matrix<T>& own = c.is_split() ? c.hidden_grad : x;
    kernels::embedding_lookup<T>(*c.exec, tokens, table, shape_->own.first_token, own);
    if (c.is_split()) c.sum_to_stream(own, nullptr, nullptr, x);
    if (is_learned())
      kernels::add_positions<T>(*c.exec, positions_in(unit), stream, batch.documents, x);
  }
  scale(*c.exec, x);
  drop(c, batch, x);
}

template <class T>
void Embedding::backward(const Context<T>& c, T* gradients, const kernels::TokenGroups& groups,
                         const EmbeddingBatch& batch, Matrix<T> dx,
                         tensor::Accumulate accumulate) const {
  drop(c, batch, dx);
  scale(*c.exec, dx);
  const Matrix<T> dtokens = tokens_in(gradients);
  // In this micro-batch only a tied head has already written the table's gradient.
  if (!shape_->tied_embeddings && accumulate == tensor::Accumulate::no)
    kernels::fill<T>(*c.exec, Vector<T>(gradients, dtokens.size()), 0);
  kernels::embedding_backward<T>(*c.exec, groups, c.all_rows(dx), {c.first_row, shape_->sequence},
                                 batch.documents, shape_->own.first_token, dtokens, accumulate,
                                 is_learned() ? positions_in(gradients) : Matrix<T>());
}

template <class T>
void Embedding::step(const CachedRows<T>& rows, const T* unit, Vector<const Token> tokens,
                     Matrix<T> x) const {
  const bool is_split = rows.group.size() > 1;
  const Matrix<T> own = is_split ? Matrix<T>(rows.share, x.extent(0), x.extent(1)) : x;
  kernels::embedding_lookup<T>(rows.exec, tokens, tokens_in(unit), shape_->own.first_token, own);
  if (is_split) rows.group.all_reduce(rows.exec, own, nullptr, nullptr, x);
  if (is_learned())
    kernels::add_positions_at<T>(rows.exec, positions_in(unit), rows.places.position, x);
  scale(rows.exec, x);
}

Work Embedding::forward_work(const PassShape& pass) const {
  Work work(*shape_, pass);
  work.messages.sum_stream();
  return work;
}

Work Embedding::backward_work(const PassShape& pass) const {
  Work work(*shape_, pass);
  work.messages.gather_stream();
  return work;
}

// NOLINTBEGIN(bugprone-macro-parentheses): T* is a type
#define KZERO_INSTANTIATE(T)                                                                       \
  template void Embedding::forward<T>(const Context<T>&, const T*, Vector<const Token>,            \
                                      const EmbeddingBatch&, Matrix<T>) const;                     \
  template void Embedding::backward<T>(const Context<T>&, T*, const kernels::TokenGroups&,         \
                                       const EmbeddingBatch&, Matrix<T>, tensor::Accumulate)       \
      const;                                                                                       \
  template void Embedding::step<T>(const CachedRows<T>&, const T*, Vector<const Token>, Matrix<T>) \
      const;
// NOLINTEND(bugprone-macro-parentheses)
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
