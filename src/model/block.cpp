#include "model/block.hpp"

#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/layernorm.hpp"
#include "model/linear.hpp"
#include "model/norm.hpp"

namespace kzero::model {

namespace {

/// Returns consecutive ranges of a flat unit.
template <class T>
struct Cursor {
  T* at;

  Vector<T> vector(Index length) {
    const Vector<T> view(at, length);
    at += length;
    return view;
  }
  Matrix<T> matrix(Index rows, Index columns) {
    const Matrix<T> view(at, rows, columns);
    at += rows * columns;
    return view;
  }
};

template <class T>
Matrix<T> take(memory::Arenas& arenas, Index rows, Index columns) {
  return Matrix<T>(arenas.take<T>(memory::Category::activations, rows * columns), rows, columns);
}

template <class T>
void normalise_input(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                     const BlockActivations<T>& saved) {
  kernels::layernorm_forward<T>(*c.exec, x, p.ln1_weight, p.ln1_bias, c.shape.layernorm_eps,
                                saved.ln1, saved.mean1, saved.rstd1);
}

template <class T>
void normalise_middle(const Context<T>& c, const BlockParams<const T>& p,
                      const BlockActivations<T>& saved) {
  kernels::layernorm_forward<T>(*c.exec, saved.middle, p.ln2_weight, p.ln2_bias,
                                c.shape.layernorm_eps, saved.ln2, saved.mean2, saved.rstd2);
}

/// Runs forward except for the final GEMM, the only one whose result backward does not read.
template <class T>
void fill_saved(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                const BlockActivations<T>& saved) {
  normalise_input(c, p, x, saved);
  linear_forward<T>(c, c.all_rows(saved.ln1), p.qkv_weight, p.qkv_bias, saved.qkv);
  kernels::attention_forward<T>(*c.exec, c.attention_shape(), saved.qkv, saved.attention,
                                saved.log_sum, c.attention);
  row_parallel_forward<T>(c, saved.attention, p.projection_weight, p.projection_bias, x.data(),
                          saved.middle);
  normalise_middle(c, p, saved);
  linear_forward<T>(c, c.all_rows(saved.ln2), p.up_weight, p.up_bias, saved.hidden);
  kernels::gelu_forward<T>(*c.exec, saved.hidden, saved.activated);
}

}  // namespace

template <class T>
SavedActivations<T>::SavedActivations(memory::Arenas& arenas, const GptShape& s, Index batch) {
  const Index n = batch * s.sequence;
  qkv = take<T>(arenas, n, 3 * s.own.width);
  attention = take<T>(arenas, n, s.own.width);
  middle = take<T>(arenas, s.stream_rows(n), s.hidden);
  hidden = take<T>(arenas, n, s.own.feed_forward);
  log_sum = take<float>(arenas, batch * s.own.heads, s.sequence);
}

template <class T>
RecomputableActivations<T>::RecomputableActivations(memory::Arenas& arenas, const GptShape& s,
                                                    Index batch) {
  const Index all = batch * s.sequence, n = s.stream_rows(all);
  const auto statistic = [&] {
    return Vector<float>(arenas.take<float>(memory::Category::activations, n), n);
  };
  ln1 = take<T>(arenas, n, s.hidden);
  ln2 = take<T>(arenas, n, s.hidden);
  activated = take<T>(arenas, all, s.own.feed_forward);
  mean1 = statistic(), rstd1 = statistic(), mean2 = statistic(), rstd2 = statistic();
}

template <class T>
BlockParams<T>::BlockParams(const GptShape& s, T* unit) {
  Cursor<T> next{unit};
  ln1_weight = next.vector(s.hidden);
  ln1_bias = next.vector(s.hidden);
  qkv_weight = next.matrix(s.hidden, 3 * s.own.width);
  qkv_bias = next.vector(3 * s.own.width);
  projection_weight = next.matrix(s.own.width, s.hidden);
  projection_bias = next.vector(s.hidden);
  ln2_weight = next.vector(s.hidden);
  ln2_bias = next.vector(s.hidden);
  up_weight = next.matrix(s.hidden, s.own.feed_forward);
  up_bias = next.vector(s.own.feed_forward);
  down_weight = next.matrix(s.own.feed_forward, s.hidden);
  down_bias = next.vector(s.hidden);
}

template <class T>
void block_forward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                   const BlockActivations<T>& saved, Matrix<T> out) {
  fill_saved(c, p, x, saved);
  row_parallel_forward<T>(c, saved.activated, p.down_weight, p.down_bias, saved.middle.data(), out);
}

// Recomputation runs forward's own kernels unchanged: nothing else would be certain to round alike.
template <class T>
void block_recompute(const Context<T>& c, deck::RecomputeMode mode, const BlockParams<const T>& p,
                     Matrix<const T> x, const BlockActivations<T>& saved) {
  switch (mode) {
    case deck::RecomputeMode::none:
      return;
    case deck::RecomputeMode::layernorm_gelu:
      normalise_input(c, p, x, saved);
      normalise_middle(c, p, saved);
      kernels::gelu_forward<T>(*c.exec, saved.hidden, saved.activated);
      return;
    case deck::RecomputeMode::full:
      fill_saved(c, p, x, saved);
      return;
  }
}

template <class T>
void block_backward(const Context<T>& c, const BlockParams<const T>& p, Matrix<const T> x,
                    const BlockActivations<T>& saved, kernels::Update update,
                    const BlockParams<T>& g, Matrix<T> dx) {
  const Matrix<T> dhidden = c.qkv_or_ffn_grad_view(c.shape.own.feed_forward);
  const Matrix<const T> dout = c.all_rows(dx);
  linear_backward_weight<T>(c, saved.activated, dout, update, g.down_weight, g.down_bias);
  linear_backward_gelu<T>(c, dout, p.down_weight, saved.hidden, dhidden);
  linear_backward_weight<T>(c, c.all_rows(saved.ln2), dhidden, update, g.up_weight, g.up_bias);
  linear_backward_input<T>(c, dhidden, p.up_weight, c.hidden_grad);
  norm_backward<T>(c, {saved.middle, p.ln2_weight, saved.mean2, saved.rstd2},
                   {dx, kernels::Update::add, g.ln2_weight, g.ln2_bias, update});

  const Index d = c.shape.own.width;
  const Matrix<T> dqkv = c.qkv_or_ffn_grad_view(3 * d);
  const Matrix<const T> dmiddle = c.all_rows(dx);
  linear_backward_weight<T>(c, saved.attention, dmiddle, update, g.projection_weight,
                            g.projection_bias);
  const Matrix<T> dattention(c.hidden_grad.data(), c.rows, d);
  linear_backward_input<T>(c, dmiddle, p.projection_weight, dattention);
  kernels::attention_backward<T>(*c.exec, c.attention_shape(), saved.qkv, saved.attention,
                                 saved.log_sum, dattention, dqkv, c.attention);
  linear_backward_weight<T>(c, c.all_rows(saved.ln1), dqkv, update, g.qkv_weight, g.qkv_bias);
  // A key bias adds the same number to all scores of a query, which softmax ignores: its gradient
  // is exactly zero. The sum leaves rounding noise, which AdamW would turn into steps of full size.
  kernels::fill<T>(*c.exec, Vector<T>(g.qkv_bias.data() + d, d), 0);
  linear_backward_input<T>(c, dqkv, p.qkv_weight, c.hidden_grad);
  norm_backward<T>(c, {x, p.ln1_weight, saved.mean1, saved.rstd1},
                   {dx, kernels::Update::add, g.ln1_weight, g.ln1_bias, update});
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template struct SavedActivations<T>;                                                             \
  template struct RecomputableActivations<T>;                                                      \
  template struct BlockParams<T>;                                                                  \
  template struct BlockParams<const T>;                                                            \
  template void block_forward<T>(const Context<T>&, const BlockParams<const T>&, Matrix<const T>,  \
                                 const BlockActivations<T>&, Matrix<T>);                           \
  template void block_recompute<T>(const Context<T>&, deck::RecomputeMode,                         \
                                   const BlockParams<const T>&, Matrix<const T>,                   \
                                   const BlockActivations<T>&);                                    \
  template void block_backward<T>(const Context<T>&, const BlockParams<const T>&, Matrix<const T>, \
                                  const BlockActivations<T>&, kernels::Update,                     \
                                  const BlockParams<T>&, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
