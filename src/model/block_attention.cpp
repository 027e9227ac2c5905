#include "model/block_attention.hpp"

#include "kernels/initialize.hpp"
#include "kernels/rotary.hpp"
#include "model/adapters.hpp"

namespace kzero::model {

namespace {

template <class T>
kernels::RotaryShape rotary_shape(const Context<T>& c) {
  const TransformerShape& s = c.shape;
  return {s.sequence, s.own.heads, s.own.kv_heads, s.head_dim, c.first_row};
}

template <class T>
kernels::HeadNorms<T> head_norms(const Context<T>& c, const BlockParams<const T>& p) {
  return {p.q_norm, p.k_norm, c.shape.norm_eps};
}

/// The rows of q, k and v before rotation. If attention's operands are those of heads, scratch
/// memory holds rows that backward does not need.
template <class T>
Matrix<T> qkv_rows(const Context<T>& c, const BlockActivations<T>& saved) {
  return saved.qkv.size() > 0 ? saved.qkv : c.qkv_grad();
}

/// The rows of q and k after rotation.
template <class T>
Matrix<T> rotated_rows(const Context<T>& c, const BlockActivations<T>& saved) {
  if (!c.shape.qk_norm) return qkv_rows(c, saved);
  if (saved.rotated.size() > 0) return saved.rotated;
  return c.qkv_or_ffn_grad_view(c.shape.own.width + c.shape.own.kv_width);
}

/// The operands of attention: q and k after rotation, and v.
template <class T>
kernels::HeadOperands<const T> operands(const Context<T>& c, const BlockActivations<T>& saved) {
  if (c.shape.shares_sequences())
    return kernels::operands_in<const T>(saved.heads_qkv, c.attention_shape());
  auto in = kernels::operands_in<const T>(saved.qkv, c.attention_shape());
  if (c.shape.qk_norm) {
    const Index stride = saved.rotated.extent(1);
    in.q = {saved.rotated.data(), stride};
    in.k = {saved.rotated.data() + c.shape.own.width, stride};
  }
  return in;
}

/// Describes q and k of one matrix and v of another as the columns of one row.
template <class U>
kernels::SideBySide<U> beside(const TransformerShape& shape, const Matrix<U>& qk,
                              const Matrix<U>& v) {
  const LocalShape& own = shape.own;
  const Index qk_stride = qk.extent(1), v_stride = v.extent(1);
  const Index copies = shape.attention_kv_copies();
  return {{{qk.data(), qk_stride, own.width},
           {qk.data() + own.width, qk_stride, own.kv_width, copies},
           {v.data() + own.width + own.kv_width, v_stride, own.kv_width, copies}},
          static_cast<Index>(qk.extent(0))};
}

template <class U>
kernels::SideBySide<U> alone(const Matrix<U>& x) {
  const Index width = x.extent(1);
  return {{{x.data(), width, width}}, static_cast<Index>(x.extent(0))};
}

template <class T>
kernels::AttentionRows attention_rows(const Context<T>& c, const BlockBatch& batch) {
  const SequenceRank& part = c.shape.sequence_rank;
  const Index heads = c.shape.own.heads;
  return {batch.documents, batch.dropout.weights,
          c.shape.tensor.rank * heads + part.rank * (heads / part.size)};
}

template <class T>
void rotate(const Context<T>& c, const BlockParams<const T>& p, const kernels::Documents& documents,
            Matrix<const T> qkv, Matrix<T> rotated) {
  kernels::rotary_forward<T>(*c.exec, rotary_shape(c), documents, c.rotary, head_norms(c, p), qkv,
                             rotated);
}

/// Converts dqkv's gradients of rotated q and k to those of the projections.
template <class T>
void rotate_backward(const Context<T>& c, const BlockParams<const T>& p,
                     const kernels::Documents& documents, const BlockActivations<T>& saved,
                     Matrix<T> dqkv, tensor::Accumulate accumulate, const BlockParams<T>& g) {
  kernels::HeadNormGradients<T> gradients{g.q_norm, g.k_norm, accumulate};
  // Every rank has its own heads.
  const bool is_sum = c.shape.qk_norm && c.is_split() && g.q_norm.size() > 0;
  if (is_sum) {
    T* scratch = c.partial_gradient.data();
    const auto d = static_cast<std::size_t>(c.shape.head_dim);
    gradients = {Vector<T>(scratch, d), Vector<T>(scratch + d, d), tensor::Accumulate::no};
  }
  kernels::rotary_backward<T>(*c.exec, rotary_shape(c), documents, c.rotary, head_norms(c, p),
                              saved.qkv, dqkv, gradients, c.partial);
  if (is_sum) c.sum_partial_gradient(2 * c.shape.head_dim, accumulate, g.q_norm.data());
}

/// Computes the gradients of the projections. The gradients of K and V are summed over the ranks
/// that hold copies of their heads.
template <class T>
void qkv_backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dqkv,
                         tensor::Accumulate accumulate, const Linear<T>& g) {
  const Index copies = c.shape.own.kv_copies;
  if (g.weight.size() == 0) return;
  if (copies == 1) {
    linear_backward_weight<T>(c, x, dqkv, accumulate, g);
    return;
  }
  const Index in = g.weight.extent(1), out = g.weight.extent(0), q = c.shape.own.width;
  T* scratch = c.partial_gradient.data();
  Linear<T> local{Matrix<T>(scratch, g.weight.extent(0), g.weight.extent(1)), {}};
  if (g.bias.size() > 0) local.bias = Vector<T>(scratch + out * in, g.bias.size());
  linear_backward_weight<T>(c, x, dqkv, tensor::Accumulate::no, local);
  const auto add = [&](const T* from, Index width, T* to) {
    c.group.sum_of_copies(*c.exec, 1, from, q * width, accumulate, to);
    c.group.sum_of_copies(*c.exec, copies, from + q * width, (out - q) * width, accumulate,
                          to + q * width);
  };
  add(local.weight.data(), in, g.weight.data());
  if (g.bias.size() > 0) add(local.bias.data(), 1, g.bias.data());
}

}  // namespace

template <class T>
void attention_half_forward(const Context<T>& c, const BlockParams<const T>& p,
                            const BlockBatch& batch, const BlockActivations<T>& saved) {
  const Matrix<T> qkv = qkv_rows(c, saved), rotated = rotated_rows(c, saved);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    const Matrix<const T> x = chunk.all_rows(rows.of(saved.norm1));
    const Matrix<T> own = rows.of(qkv);
    linear_forward<T>(chunk, x, p.qkv, own);
    adapters_forward<T>(chunk, Site::qkv, p.adapters, x, own);
    if (c.shape.positions == PositionKind::rotary)
      rotate<T>(chunk, p, batch.documents, own, rows.of(rotated));
  });
  const bool exchanges = c.shape.shares_sequences();
  if (exchanges) {
    const Matrix<const T> qk = rotated, v = qkv;
    c.sequence_group.to_heads(*c.exec, beside(c.shape, qk, v), saved.heads_qkv);
  }
  c.attention.backend->forward(*c.exec, operands(c, saved), attention_rows(c, batch),
                               exchanges ? saved.heads_attention : saved.attention, saved.log_sum);
  if (exchanges) c.sequence_group.to_rows(*c.exec, saved.heads_attention, alone(saved.attention));
}

template <class T>
void restore_rotated(const Context<T>& c, const BlockParams<const T>& p,
                     const kernels::Documents& documents, const BlockActivations<T>& saved) {
  if (saved.rotated.size() > 0) rotate<T>(c, p, documents, saved.qkv, saved.rotated);
}

template <class T>
void attention_backward(const Context<T>& c, const BlockBatch& batch,
                        const BlockActivations<T>& saved, Matrix<T> dattention) {
  const auto backward = [&](const Matrix<T>& out, const Matrix<T>& dout, const Matrix<T>& dqkv) {
    c.attention.backend->backward(*c.exec, operands(c, saved), attention_rows(c, batch), out,
                                  saved.log_sum, dout,
                                  kernels::operands_in<T>(dqkv, c.attention_shape()));
  };
  const Matrix<T> dqkv = c.qkv_grad();
  if (!c.shape.shares_sequences()) return backward(saved.attention, dattention, dqkv);
  const Matrix<T> dheads(dattention.data(), saved.heads_attention.extent(0),
                         saved.heads_attention.extent(1));
  const Matrix<T> dheads_qkv(dqkv.data(), saved.heads_qkv.extent(0), saved.heads_qkv.extent(1));
  c.sequence_group.to_heads(*c.exec, alone(Matrix<const T>(dattention)), dheads);
  backward(saved.heads_attention, dheads, dheads_qkv);
  c.sequence_group.to_rows(*c.exec, dheads_qkv, beside(c.shape, dqkv, dqkv));
}

template <class T>
void projections_backward(const Context<T>& c, const BlockParams<const T>& p,
                          const BlockBatch& batch, const BlockActivations<T>& saved, Matrix<T> dqkv,
                          tensor::Accumulate accumulate, const BlockParams<T>& g,
                          bool needs_input) {
  if (c.shape.positions == PositionKind::rotary)
    rotate_backward<T>(c, p, batch.documents, saved, dqkv, accumulate, g);
  const bool has_adapters = c.shape.adapters.has(Site::qkv);
  Matrix<const T> x;
  if (!c.shape.is_frozen() || has_adapters) x = c.all_rows(saved.norm1);
  qkv_backward_weight<T>(c, x, dqkv, accumulate, g.qkv);
  // Without rotation, a key bias adds the same number to all scores of a query. Softmax ignores
  // this number, so the gradient is exactly zero. The computed sum has rounding noise, which AdamW
  // would turn into full-size steps.
  const LocalShape& own = c.shape.own;
  if (c.shape.positions == PositionKind::learned && g.qkv.bias.size() > 0) {
    const auto count = static_cast<std::size_t>(own.kv_width);
    kernels::fill<T>(*c.exec, Vector<T>(g.qkv.bias.data() + own.width, count), 0);
  }
  if (needs_input) linear_backward_input<T>(c, dqkv, p.qkv, c.hidden_grad);
  if (has_adapters)
    adapters_backward<T>(c, Site::qkv, {x, dqkv, p.adapters, g.adapters, accumulate},
                         needs_input ? c.hidden_grad : Matrix<T>());
}

#define KZERO_INSTANTIATE(T)                                                                      \
  template void attention_half_forward<T>(const Context<T>&, const BlockParams<const T>&,         \
                                          const BlockBatch&, const BlockActivations<T>&);         \
  template void restore_rotated<T>(const Context<T>&, const BlockParams<const T>&,                \
                                   const kernels::Documents&, const BlockActivations<T>&);        \
  template void attention_backward<T>(const Context<T>&, const BlockBatch&,                       \
                                      const BlockActivations<T>&, Matrix<T>);                     \
  template void projections_backward<T>(const Context<T>&, const BlockParams<const T>&,           \
                                        const BlockBatch&, const BlockActivations<T>&, Matrix<T>, \
                                        tensor::Accumulate, const BlockParams<T>&, bool);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
