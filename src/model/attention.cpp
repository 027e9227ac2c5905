#include "model/attention.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"

namespace kzero::model {

using deck::RecomputeMode;

namespace {

/// Whether block i is one of every so many; none is for 0.
bool is_one_of(Index every, Index i) { return every > 0 && (i + 1) % every == 0; }

bool has_window(const deck::Model& model, Index i) {
  return model.window > 0 && !is_one_of(model.full_attention_every, i);
}

/// The window of block i. One that no sequence exceeds is none.
Index window_in(const deck::Model& model, Index i) {
  return !has_window(model, i) || model.window >= model.sequence ? 0 : model.window;
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

/// Computes out [N,2], the sums over the tensor ranks, in rank order, of what `fill` computes of
/// each. `all` has room for those of all ranks. Collective over the tensor group.
template <class T, class F>
void sum_over_ranks(const Execution& exec, const TensorGroup<T>& group, float* all,
                    const Matrix<float>& out, const F& fill) {
  if (group.size() == 1) return fill(out);
  const auto count = static_cast<Index>(out.size());
  fill(Matrix<float>(all + group.rank() * count, out.extent(0), out.extent(1)));
  group.exchange_own(exec, all, count);
  kernels::sum_of_ranks(exec,
                        Vector<const float>(all, static_cast<std::size_t>(group.size() * count)),
                        Vector<float>(out.data(), out.size()));
}

template <class U>
kernels::SideBySide<U> alone(const Matrix<U>& x) {
  const Index width = x.extent(1);
  return {{{x.data(), width, width}}, static_cast<Index>(x.extent(0))};
}

}  // namespace

namespace {

/// Declares the weights of the norms of q and of k, if there are any. Returns where they begin in
/// the unit.
Index declare_head_norms(Declaration& d) {
  const TransformerShape& s = d.shape;
  const Index begin = d.own.elements();
  const auto add = [&](std::string_view name, const Extent& of_all) {
    const std::string path = std::string(name) + ".weight";
    param::ParamSpec p =
        s.qk_norm == QkNorm::all_heads ? bias_spec(path, 1, of_all) : vector_spec(path, s.head_dim);
    if (s.norm_offset == 0) p.init = param::Init::ones;
    d.own.add(std::move(p));
  };
  if (!s.norms_heads()) return begin;
  add(d.family.names.query_norm, d.extents.width);
  add(d.family.names.key_norm, d.extents.kv_width);
  return begin;
}

}  // namespace

template <class T>
Attention<T>::Attention(Declaration& d, const deck::Model& model)
    : shape_(d.shape),
      drops_weights_(model.attention_dropout > 0),
      window_(window_in(model, d.block)),
      rotates_(shape_.positions == PositionKind::rotary &&
               !is_one_of(model.no_rope_every, d.block)),
      rotates_apart_(shape_.rotates_windows_apart && has_window(model, d.block)),
      norm_(d, d.family.names.attention.input),
      qkv_(d, deck::Product::qkv),
      head_norms_(declare_head_norms(d)),
      end_(d, deck::Product::projection, d.family.names.attention.output) {}

template <class T>
Kept Attention<T>::kept(RecomputeMode mode) const {
  if (mode == RecomputeMode::none) return Kept::all;
  return mode == RecomputeMode::full ? Kept::input : Kept::products;
}

/// Sequence ranks exchange q, k and v together. Otherwise q and k may be apart from v.
template <class T>
kernels::AttentionProblem Attention<T>::problem(const BatchShape& b) const {
  const Index ranks = shape_.sequence_rank.size, width = shape_.exchanged_width() / ranks;
  const bool is_apart = shape_.norms_heads() && !shape_.shares_sequences();
  const Index qk_width = is_apart ? shape_.own.width + shape_.own.kv_width : width;
  return {.shape = {b.batch, shape_.sequence, shape_.own.heads / ranks, shape_.attention_kv_heads(),
                    shape_.head_dim},
          .type = dtype_of<T>,
          .q_stride = qk_width,
          .k_stride = qk_width,
          .v_stride = width,
          .has_backward = b.passes == Passes::all,
          .documents = b.documents || window_ > 0,  // the mask has the same form
          .dropout = b.passes == Passes::all && drops_weights_,
          .scale = shape_.attention_scale,
          .fixed_order = b.fixed_order || b.passes == Passes::forward};
}

template <class T>
ScratchNeeds Attention<T>::scratch(const BatchShape& batch) const {
  const Index rows = batch.batch * shape_.own_sequence();
  const Index biases =
      std::max(shape_.qkv_bias ? qkv_.out() : 0, shape_.biases ? shape_.hidden : 0);
  const bool norms_all = shape_.qk_norm == QkNorm::all_heads;
  const Index each_head = shape_.qk_norm == QkNorm::each_head ? 2 * shape_.head_dim : 0;
  const Index head_norms = norms_all ? shape_.own.width + shape_.own.kv_width : each_head;
  Index partial = std::max(qkv_.partial_gradient(), projection().partial_gradient());
  if (!shape_.is_frozen()) partial = std::max(partial, each_head);
  return {.wide = rows * shape_.exchanged_width(),
          .sum_columns = std::max({shape_.norm_elements(), biases, head_norms}),
          .partial_gradient = shape_.tensor.size > 1 ? partial : 0,
          .head_squares = norms_all ? shape_.tensor.size * rows * kernels::norms_of_heads : 0,
          .attention = {problem(batch)},
          .window = window_};
}

template <class T>
void Attention<T>::keep(Activations& memory, const BatchShape& batch, Kept kept) {
  const TransformerShape& s = shape_;
  const Index rows = batch.batch * s.own_sequence(), all = batch.batch * s.sequence;
  const Index n = s.stream_rows(rows), ranks = s.sequence_rank.size;
  kept_ = kept, problem_ = problem(batch);
  const bool products = kept != Kept::input, passes = kept == Kept::all;
  if (!s.shares_sequences() || s.norms_heads())
    qkv_out_ = memory.take<T>(products, "qkv", rows, qkv_.out());
  attention_ = memory.take<T>(products, "attention", rows, s.own.width);
  if (s.shares_sequences()) {
    heads_qkv_ = memory.take<T>(products, "heads_qkv", all, s.exchanged_width() / ranks);
    heads_attention_ = memory.take<T>(products, "heads_attention", all, s.own.width / ranks);
  }
  log_sum_ = memory.take<float>(products, "log_sum", batch.batch * s.own.heads / ranks, s.sequence);
  if (norm_.exists()) {
    normal_ = memory.take<T>(passes, "norm1", n, s.hidden);
    statistics_ = {memory, passes, "mean1", "rstd1", s, n};
  }
  if (s.norms_heads() && !s.shares_sequences())
    rotated_ = memory.take<T>(passes, "rotated", rows, s.own.width + s.own.kv_width);
  if (s.qk_norm == QkNorm::all_heads) {
    squares_ = memory.take<float>(true, "head_squares", rows, kernels::norms_of_heads);
    dots_ = memory.take<float>(false, "head_dots", rows, kernels::norms_of_heads);
  }
  end_saved_ = end_.take(memory, products, "attention_end", "attention_rstd", n);
}

template <class T>
kernels::RotaryShape Attention<T>::rotary_shape(const Context<T>& c) const {
  return {shape_.sequence, shape_.own.heads, shape_.own.kv_heads, shape_.head_dim, c.first_row};
}

/// The norms that rotation computes on its way.
template <class T>
kernels::HeadNorms<T> Attention<T>::head_norms(const T* unit) const {
  if (shape_.qk_norm != QkNorm::each_head) return {{}, {}, shape_.norm_eps};
  const auto d = static_cast<std::size_t>(shape_.head_dim);
  const T* weights = unit + head_norms_;
  return {Vector<const T>(weights, d), Vector<const T>(weights + d, d), shape_.norm_eps,
          shape_.norm_offset};
}

/// The table of this layer, of those of all layers.
template <class T>
Matrix<const float> Attention<T>::rotary_in(const Matrix<const float>& tables) const {
  const std::size_t positions = tables.extent(0) / static_cast<std::size_t>(shape_.rotary_tables());
  const std::size_t first = rotates_apart_ ? positions : 0;
  return {tables.data() + first * tables.extent(1), positions, tables.extent(1)};
}

/// The rows of q, k and v before rotation. If attention's operands are those of heads, scratch
/// memory holds rows that backward does not need.
template <class T>
Matrix<T> Attention<T>::qkv_rows(const Context<T>& c) const {
  return qkv_out_.size() > 0 ? qkv_out_ : c.wide_view(qkv_.out());
}

/// The rows of q and k after rotation.
template <class T>
Matrix<T> Attention<T>::rotated_rows(const Context<T>& c) const {
  if (!shape_.norms_heads()) return qkv_rows(c);
  if (rotated_.size() > 0) return rotated_;
  return c.wide_view(shape_.own.width + shape_.own.kv_width);
}

/// The operands of attention: q and k after rotation, and v.
template <class T>
kernels::HeadOperands<const T> Attention<T>::operands() const {
  if (shape_.shares_sequences()) return kernels::operands_in<const T>(heads_qkv_, problem_.shape);
  auto in = kernels::operands_in<const T>(qkv_out_, problem_.shape);
  if (shape_.norms_heads()) {
    const Index stride = rotated_.extent(1);
    in.q = {rotated_.data(), stride};
    in.k = {rotated_.data() + shape_.own.width, stride};
  }
  return in;
}

template <class T>
kernels::AttentionRows Attention<T>::attention_rows(const BlockPass<T>& pass) const {
  const SequenceRank& part = shape_.sequence_rank;
  const Index heads = shape_.own.heads;
  return {window_ > 0 ? pass.c.in_window() : pass.documents, pass.dropout.weights,
          shape_.tensor.rank * heads + part.rank * (heads / part.size)};
}

template <class T>
kernels::AllHeadsShape Attention<T>::all_heads() const {
  return {shape_.own.width, shape_.own.kv_width, shape_.width(), shape_.kv_width(),
          shape_.norm_eps};
}

template <class T>
template <class U>
Vector<U> Attention<T>::all_heads_weights(U* unit) const {
  if (unit == nullptr) return {};
  return {unit + head_norms_, static_cast<std::size_t>(all_heads().width())};
}

/// Rotates q and k, after their norms. Norms over all heads take their squares from `squares`.
template <class T>
void Attention<T>::rotate(const Context<T>& c, const BlockPass<T>& pass, Matrix<const T> qkv,
                          Matrix<const float> squares, Matrix<T> rotated) const {
  const T* const unit = pass.parameters.own;
  Matrix<const T> from = qkv;
  if (shape_.qk_norm == QkNorm::all_heads) {
    kernels::all_heads_norm_forward<T>(*c.exec, all_heads(), all_heads_weights(unit), qkv, squares,
                                       rotated);
    from = rotated;
  }
  kernels::rotary_forward<T>(*c.exec, rotary_shape(c), pass.documents, rotary_in(c.rotary),
                             head_norms(unit), from, rotated);
}

/// Runs forward up to attention's result.
template <class T>
void Attention<T>::fill(const BlockPass<T>& pass, Matrix<const T> x) const {
  const Context<T>& c = pass.c;
  const Matrix<T> qkv = qkv_rows(c), rotated = rotated_rows(c);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    norm_.forward(*chunk.exec, pass.parameters.own, rows.of(x), rows.of(normal_),
                  statistics_.of(rows));
  });
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    const Matrix<T> own = rows.of(qkv);
    qkv_.forward(chunk, pass.parameters, chunk.all_rows(norm_.result(rows.of(x), rows.of(normal_))),
                 own);
    if (squares_.size() > 0)
      sum_over_ranks(*c.exec, c.group, c.head_squares, rows.of(squares_), [&](const auto& sums) {
        kernels::row_squares<T>(*c.exec, all_heads(), own, sums);
      });
    if (rotates_) rotate(chunk, pass, own, rows.of(squares_), rows.of(rotated));
  });
  const bool exchanges = shape_.shares_sequences();
  if (exchanges) {
    const Matrix<const T> qk = rotated, v = qkv;
    c.sequence_group.to_heads(*c.exec, beside(shape_, qk, v), heads_qkv_);
  }
  backend(c).forward(*c.exec, operands(), attention_rows(pass),
                     exchanges ? heads_attention_ : attention_, log_sum_);
  if (exchanges) c.sequence_group.to_rows(*c.exec, heads_attention_, alone(attention_));
}

template <class T>
void Attention<T>::finish(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) const {
  for_each_chunk(pass.c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    end_.forward(chunk, pass.parameters, rows.of(attention_), pass.dropout.attention,
                 end_saved_.of(rows), rows.of(x), rows.of(y));
  });
}

template <class T>
void Attention<T>::forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  fill(pass, x);
  finish(pass, x, y);
}

template <class T>
void Attention<T>::recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  if (kept_ == Kept::all) return;
  if (kept_ == Kept::input) {
    fill(pass, x);
    if (y.size() > 0 || end_.has_norm()) finish(pass, x, y);
    return;
  }
  norm_.forward(*pass.c.exec, pass.parameters.own, x, normal_, statistics_);
  if (rotated_.size() > 0) rotate(pass.c, pass, qkv_out_, squares_, rotated_);
}

template <class T>
bool Attention<T>::backward(const BlockPass<T>& pass, Matrix<const T> x,
                            const HalfGradients<T>& gradients) {
  const Context<T>& c = pass.c;
  const Matrix<T>& dx = gradients.dx;
  const bool ends = !gradients.needs_input && !qkv_.trains();
  const Matrix<T> dattention(c.hidden_grad.data(), c.rows, shape_.own.width);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const LayerGradients<T> g = gradients.of(number);
    const Matrix<const T> dsum =
        end_.backward(chunk, pass.parameters, pass.dropout.attention, end_saved_.of(rows),
                      rows.of(dx), rows.of(gradients.scratch), g);
    const Matrix<const T> attention = rows.of(attention_);
    projection().backward_weight(chunk, attention, dsum, g);
    if (!gradients.norms_sum_biases) projection().backward_bias(chunk, dsum, g);
    const Matrix<T> own = rows.of(dattention);
    if (!ends) projection().backward_input(chunk, pass.parameters, dsum, own);
    projection().backward_adapters(chunk, pass.parameters, attention, dsum, g,
                                   ends ? Matrix<T>() : own);
  });
  if (ends) return false;
  attention_backward(pass, dattention);
  for_each_chunk(c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const LayerGradients<T> g = gradients.of(number);
    qkv_backward(chunk, pass, rows, x, g, gradients.needs_input);
    if (!gradients.needs_input) return;
    norm_.backward(chunk, pass.parameters.own, rows.of(x), statistics_.of(rows),
                   {rows.of(dx), tensor::Accumulate::yes, norm_.in(g.units.own), g.accumulate});
  });
  return gradients.needs_input;
}

/// Computes the gradient of attention's operands in c.wide from that of its result, which it
/// overwrites.
template <class T>
void Attention<T>::attention_backward(const BlockPass<T>& pass, Matrix<T> dattention) const {
  const Context<T>& c = pass.c;
  const auto backward = [&](const Matrix<T>& out, const Matrix<T>& dout, const Matrix<T>& dqkv) {
    backend(c).backward(*c.exec, operands(), attention_rows(pass), out, log_sum_, dout,
                        kernels::operands_in<T>(dqkv, problem_.shape));
  };
  const Matrix<T> dqkv = c.wide_view(qkv_.out());
  if (!shape_.shares_sequences()) return backward(attention_, dattention, dqkv);
  const Matrix<T> dheads(dattention.data(), heads_attention_.extent(0), heads_attention_.extent(1));
  const Matrix<T> dheads_qkv(dqkv.data(), heads_qkv_.extent(0), heads_qkv_.extent(1));
  c.sequence_group.to_heads(*c.exec, alone(Matrix<const T>(dattention)), dheads);
  backward(heads_attention_, dheads, dheads_qkv);
  c.sequence_group.to_rows(*c.exec, dheads_qkv, beside(shape_, dqkv, dqkv));
}

/// Converts dqkv's gradients of rotated q and k to those of the projections, with a norm of each
/// head or without norms.
template <class T>
void Attention<T>::rotate_backward(const Context<T>& c, const BlockPass<T>& pass,
                                   const PartRows& rows, Matrix<T> dqkv,
                                   const LayerGradients<T>& g) const {
  const auto d = static_cast<std::size_t>(shape_.head_dim);
  const auto pair_at = [&](T* weights, tensor::Accumulate accumulate) {
    return kernels::HeadNormGradients<T>{Vector<T>(weights, d), Vector<T>(weights + d, d),
                                         accumulate};
  };
  const bool has_weights = shape_.qk_norm == QkNorm::each_head && g.units.own != nullptr;
  T* const own = has_weights ? g.units.own + head_norms_ : nullptr;
  const bool is_sum = own != nullptr && c.is_split();  // every rank has its own heads
  kernels::HeadNormGradients<T> gradients{{}, {}, g.accumulate};
  if (own != nullptr) gradients = pair_at(own, g.accumulate);
  if (is_sum) gradients = pair_at(c.partial_gradient.data(), tensor::Accumulate::no);
  kernels::rotary_backward<T>(*c.exec, rotary_shape(c), pass.documents, rotary_in(c.rotary),
                              head_norms(pass.parameters.own), rows.of(qkv_out_), dqkv, gradients,
                              c.partial);
  if (is_sum) c.sum_partial_gradient(2 * shape_.head_dim, g.accumulate, own);
}

/// Converts dqkv's gradients of normed q and k to those of the projections, with norms over all
/// heads. Collective over the tensor group.
template <class T>
void Attention<T>::all_heads_backward(const Context<T>& c, const BlockPass<T>& pass,
                                      const PartRows& rows, Matrix<T> dqkv,
                                      const LayerGradients<T>& g) const {
  const Matrix<const T> qkv = rows.of(qkv_out_);
  const Vector<const T> weights = all_heads_weights(pass.parameters.own);
  const Matrix<const float> squares = rows.of(squares_);
  const Matrix<float> dots = rows.of(dots_);
  sum_over_ranks(*c.exec, c.group, c.head_squares, dots, [&](const auto& sums) {
    kernels::row_dots<T>(*c.exec, all_heads(), weights, qkv, dqkv, sums);
  });
  kernels::all_heads_norm_backward<T>(*c.exec, all_heads(), weights, qkv, squares, dots, dqkv,
                                      all_heads_weights(g.units.own), g.accumulate, c.partial);
}

/// Computes the gradients of a chunk's projections to q, k and v and of their norms from c.wide,
/// which it overwrites. x [n,D] is the half's input. If `needs_input`, c.hidden_grad receives this
/// rank's part of the gradient of the norm's output.
template <class T>
void Attention<T>::qkv_backward(const Context<T>& c, const BlockPass<T>& pass, const PartRows& rows,
                                Matrix<const T> x, const LayerGradients<T>& g,
                                bool needs_input) const {
  const Matrix<T> dqkv = rows.of(pass.c.wide_view(qkv_.out()));
  if (rotates_) rotate_backward(c, pass, rows, dqkv, g);
  if (squares_.size() > 0) all_heads_backward(c, pass, rows, dqkv, g);
  Matrix<const T> in;
  if (qkv_.trains()) in = c.all_rows(norm_.result(rows.of(x), rows.of(normal_)));
  qkv_.backward_weight(c, in, dqkv, g);
  qkv_.backward_bias(c, dqkv, g);
  // Without rotation, a key bias adds the same number to all scores of a query. Softmax ignores
  // this number, so the gradient is exactly zero. The computed sum has rounding noise, which AdamW
  // would turn into full-size steps.
  if (const Vector<T> bias = qkv_.in_unit(g.units.own).bias; !rotates_ && bias.size() > 0) {
    const auto count = static_cast<std::size_t>(shape_.own.kv_width);
    kernels::fill<T>(*c.exec, Vector<T>(bias.data() + shape_.own.width, count), 0);
  }
  const Matrix<T> dx = needs_input ? c.hidden_grad : Matrix<T>();
  if (needs_input) qkv_.backward_input(c, pass.parameters, dqkv, dx);
  qkv_.backward_adapters(c, pass.parameters, in, dqkv, g, dx);
}

template <class T>
void Attention<T>::cache(memory::Arenas& arenas, Activations& shared,
                         const kernels::CacheShape& shape, Index rows) {
  cache_shape_ = window_ > 0 ? shape.in_window(window_, rows) : shape;
  const Index elements = cache_shape_.elements();
  cache_ = {arenas.take<T>(memory::Category::activations, elements),
            arenas.take<T>(memory::Category::activations, elements)};
  const LocalShape& own = shape_.own;
  if (norm_.exists()) {
    normal_ = shared.take<T>(false, "norm1", rows, shape_.hidden);
    statistics_ = {shared, false, "mean1", "rstd1", shape_, rows};
  }
  qkv_out_ = shared.take<T>(false, "qkv", rows, qkv_.out());
  attention_ = shared.take<T>(false, "attention", rows, own.width);
  if (shape_.norms_heads())
    rotated_ = shared.take<T>(false, "rotated", rows, own.width + own.kv_width);
  if (shape_.qk_norm == QkNorm::all_heads) {
    squares_ = shared.take<float>(false, "head_squares", rows, kernels::norms_of_heads);
    rank_squares_ = shared.take<float>(false, "rank_squares", shape_.tensor.size * rows,
                                       kernels::norms_of_heads);
  }
  end_saved_ = end_.take(shared, false, "attention_end", "attention_rstd", rows);
}

template <class T>
void Attention<T>::clear_cache(const Execution& exec) {
  const auto count = static_cast<std::size_t>(cache_shape_.elements());
  kernels::fill<T>(exec, Vector<T>(cache_.keys, count), 0);
  kernels::fill<T>(exec, Vector<T>(cache_.values, count), 0);
}

/// Norms and rotates q and k of the rows of a pass of generation. Returns attention's operands.
template <class T>
kernels::HeadOperands<const T> Attention<T>::step_heads(const CachedRows<T>& rows, const T* unit,
                                                        Matrix<T> qkv) const {
  const LocalShape& own = shape_.own;
  auto in = kernels::operands_in<const T>(qkv, {1, 1, own.heads, own.kv_heads, shape_.head_dim});
  if (!rotates_ && !shape_.norms_heads()) return in;
  const Matrix<T> rotated = shape_.norms_heads() ? rows.of(rotated_) : qkv;
  Matrix<const T> from = qkv;
  if (shape_.qk_norm == QkNorm::all_heads) {
    const Matrix<float> squares = rows.of(squares_);
    sum_over_ranks(rows.exec, rows.group, rank_squares_.data(), squares, [&](const auto& sums) {
      kernels::row_squares<T>(rows.exec, all_heads(), qkv, sums);
    });
    kernels::all_heads_norm_forward<T>(rows.exec, all_heads(), all_heads_weights(unit), qkv,
                                       squares, rotated);
    from = rotated;
  }
  kernels::rotary_at<T>(rows.exec, {shape_.sequence, own.heads, own.kv_heads, shape_.head_dim},
                        rotary_in(rows.rotary), rows.places.position, head_norms(unit), from,
                        rotated);
  const Index stride = rotated.extent(1);
  in.q = {rotated.data(), stride}, in.k = {rotated.data() + own.width, stride};
  return in;
}

template <class T>
void Attention<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x, Matrix<T> y) {
  const Matrix<T> normal = rows.of(normal_), qkv = rows.of(qkv_out_);
  norm_.forward(rows.exec, unit, x, normal, statistics_);
  qkv_.step(rows, unit, norm_.result(x, normal), qkv);
  const kernels::HeadOperands<const T> in = step_heads(rows, unit, qkv);
  const Matrix<T> attention = rows.of(attention_);
  kernels::store_keys_values<T>(rows.exec, cache_shape_, rows.places, in.k, in.v, cache_);
  kernels::cached_attention<T>(rows.exec, cache_shape_, rows.places, in.q, cache_, attention,
                               window_, shape_.attention_scale);
  end_.step(rows, unit, attention, end_saved_, x, y);
}

/// The scores that the mask shows, and their products with v: half of all, or those in the window.
template <class T>
double Attention<T>::attention_operations() const {
  const auto sequence = static_cast<double>(shape_.sequence);
  const double window = window_ > 0 ? static_cast<double>(window_) : sequence;
  const double keys = window - window * window / (2 * sequence);  // of a query, on average
  return 4 * keys * static_cast<double>(shape_.own.width);
}

/// Of forward up to attention's result.
template <class T>
void Attention<T>::add_forward_messages(Messages& messages) const {
  messages.gather_stream();
  if (shape_.qk_norm == QkNorm::all_heads) messages.gather_columns(kernels::norms_of_heads);
  messages.exchange_heads();
}

template <class T>
Work Attention<T>::forward_work(const PassShape& pass) const {
  Work work(shape_, pass);
  work.operations =
      qkv_.forward_operations() + attention_operations() + projection().forward_operations();
  add_forward_messages(work.messages);
  work.messages.sum_stream();
  return work;
}

template <class T>
Work Attention<T>::recompute_work(const PassShape& pass, Kept kept, bool is_last) const {
  Work work(shape_, pass);
  if (kept == Kept::products) {
    const Index rotated = shape_.norms_heads() ? 2 * (shape_.own.width + shape_.own.kv_width) : 0;
    const Index normal = norm_.exists() ? 2 * shape_.hidden : 0;
    work.elements = static_cast<double>(normal + rotated);
  }
  if (kept != Kept::input) return work;
  work.operations = qkv_.forward_operations() + attention_operations();
  add_forward_messages(work.messages);
  if (is_last && !end_.has_norm()) return work;
  work.operations += projection().forward_operations();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work Attention<T>::backward_work(const PassShape& pass, bool needs_input) const {
  Work work(shape_, pass);
  Messages& messages = work.messages;
  const bool reaches_qkv = needs_input || qkv_.trains();
  work.operations = projection().backward_operations(reaches_qkv);
  end_.add_backward_messages(messages);
  if (!reaches_qkv) return work;
  work.operations += 2 * attention_operations() + qkv_.backward_operations(needs_input);
  messages.exchange_heads();
  if (shape_.qk_norm == QkNorm::each_head && !shape_.is_frozen())
    messages.sum_gradient(2 * shape_.head_dim);
  if (shape_.qk_norm == QkNorm::all_heads) messages.gather_columns(kernels::norms_of_heads);
  if (qkv_.trains()) messages.gather_stream();
  qkv_.add_gradient_messages(messages);
  if (needs_input) norm_.add_gradient_messages(messages);
  return work;
}

template <class T>
double Attention<T>::recomputed_in_backward(Kept /*kept*/) const {
  return qkv_.recomputed_operations() + projection().recomputed_operations();
}

#define KZERO_INSTANTIATE(T) template class Attention<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
