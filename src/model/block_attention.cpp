#include "model/block_attention.hpp"

#include "kernels/initialize.hpp"
#include "kernels/rotary.hpp"
#include "model/adapters.hpp"

namespace kzero::model {

namespace {

template <class T>
kernels::RotaryShape rotary_shape(const Context<T>& c) {
  const TransformerShape& s = c.shape;
  return {s.sequence, s.own.heads, s.own.kv_heads, s.head_dim};
}

template <class T>
kernels::HeadNorms<T> head_norms(const Context<T>& c, const BlockParams<const T>& p) {
  return {p.q_norm, p.k_norm, c.shape.norm_eps};
}

/// The operands of attention: q and k after rotation, and v.
template <class T>
kernels::HeadOperands<const T> operands(const Context<T>& c, const BlockActivations<T>& saved) {
  auto in = kernels::operands_in<const T>(saved.qkv, c.attention_shape());
  if (c.shape.qk_norm) {
    const Index stride = saved.rotated.extent(1);
    in.q = {saved.rotated.data(), stride};
    in.k = {saved.rotated.data() + c.shape.own.width, stride};
  }
  return in;
}

template <class T>
kernels::AttentionRows attention_rows(const Context<T>& c, const BlockBatch& batch) {
  return {batch.documents, batch.dropout.weights, c.shape.tensor.rank * c.shape.own.heads};
}

template <class T>
void rotate(const Context<T>& c, const BlockParams<const T>& p, const kernels::Documents& documents,
            const BlockActivations<T>& saved) {
  kernels::rotary_forward<T>(*c.exec, rotary_shape(c), documents, c.rotary, head_norms(c, p),
                             saved.qkv, c.shape.qk_norm ? saved.rotated : saved.qkv);
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
  const Matrix<const T> x = c.all_rows(saved.norm1);
  linear_forward<T>(c, x, p.qkv, saved.qkv);
  adapters_forward<T>(c, Site::qkv, p.adapters, x, saved.qkv);
  if (c.shape.positions == PositionKind::rotary) rotate<T>(c, p, batch.documents, saved);
  c.attention.backend->forward(*c.exec, operands(c, saved), attention_rows(c, batch),
                               saved.attention, saved.log_sum);
}

template <class T>
void restore_rotated(const Context<T>& c, const BlockParams<const T>& p,
                     const kernels::Documents& documents, const BlockActivations<T>& saved) {
  if (c.shape.qk_norm) rotate<T>(c, p, documents, saved);
}

template <class T>
void attention_half_backward(const Context<T>& c, const BlockParams<const T>& p,
                             const BlockBatch& batch, const BlockActivations<T>& saved,
                             tensor::Accumulate accumulate, const BlockParams<T>& g,
                             bool needs_input) {
  const Matrix<const T> dattention(c.hidden_grad.data(), c.rows, c.shape.own.width);
  const Matrix<T> dqkv = c.qkv_or_ffn_grad_view(c.shape.own.qkv_width());
  c.attention.backend->backward(*c.exec, operands(c, saved), attention_rows(c, batch),
                                saved.attention, saved.log_sum, dattention,
                                kernels::operands_in<T>(dqkv, c.attention_shape()));
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

#define KZERO_INSTANTIATE(T)                                                               \
  template void attention_half_forward<T>(const Context<T>&, const BlockParams<const T>&,  \
                                          const BlockBatch&, const BlockActivations<T>&);  \
  template void restore_rotated<T>(const Context<T>&, const BlockParams<const T>&,         \
                                   const kernels::Documents&, const BlockActivations<T>&); \
  template void attention_half_backward<T>(const Context<T>&, const BlockParams<const T>&, \
                                           const BlockBatch&, const BlockActivations<T>&,  \
                                           tensor::Accumulate, const BlockParams<T>&, bool);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
