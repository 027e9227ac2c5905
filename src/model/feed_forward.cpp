#include "model/feed_forward.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/gated.hpp"
#include "kernels/gelu.hpp"
#include "kernels/norm.hpp"
#include "kernels/xielu.hpp"

namespace kzero::model {

using deck::RecomputeMode;
using tensor::Accumulate;

namespace {

/// Declares xIELU's two scales, which the softplus of a parameter gives, and returns where they
/// begin in the unit. At first they are 0.8 (arXiv 2411.13010, section 4), with a fixed 0.5 added
/// to the negative one.
Index declare_scales(Declaration& d) {
  const auto add = [&](std::string_view name, double scale) {
    param::ParamSpec p = vector_spec(std::string(name), 1, param::Init::constant);
    p.std = std::log(std::expm1(scale));
    return d.own.add(std::move(p));
  };
  const Index begin = add(d.family.names.positive_scale, 0.8);
  add(d.family.names.negative_scale, 0.8 - 0.5);
  return begin;
}

}  // namespace

template <class T>
FeedForward<T>::FeedForward(Declaration& d, Index tile_rows)
    : shape_(d.shape),
      tile_rows_(tile_rows),
      norm_(d, d.family.names.feed_forward.input),
      scales_(has_scales() ? declare_scales(d) : 0),
      up_(d, deck::Product::up),
      end_(d, deck::Product::down, d.family.names.feed_forward.output),
      adapter_elements_(d.adapters.elements()) {}

template <class T>
Kept FeedForward<T>::kept(RecomputeMode mode) const {
  if (mode == RecomputeMode::none) return Kept::all;
  return mode == RecomputeMode::layernorm_gelu ? Kept::products : Kept::input;
}

template <class T>
ScratchNeeds FeedForward<T>::scratch(const BatchShape& batch) const {
  const TransformerShape& s = shape_;
  const bool in_tiles = has_tiles(batch, s);
  const Index rows = in_tiles ? batch.tile_rows : batch.batch * s.chunk_rows();
  Index sums = std::max({s.norm_elements(), s.biases ? std::max(s.hidden, up_.out()) : 0,
                         has_scales() ? scale_count : 0});
  if (s.sums_stream_biases()) sums = std::max(sums, kernels::layernorm_sums(s.hidden, true));
  Index tile_sums = down().begin() + down().elements() - up_.begin();
  if (s.is_frozen()) {
    tile_sums = up_.has_adapters() || down().has_adapters() ? adapter_elements_ : 0;
  } else if (dtype_of<T> == Dtype::fp32) {
    tile_sums = 0;
  }
  return {.wide = rows * up_.out(),
          .sum_columns = sums,
          .partial_gradient = s.tensor.size > 1
                                  ? std::max({up_.partial_gradient(), down().partial_gradient(),
                                              has_scales() ? scale_count : 0})
                                  : 0,
          .tile_sums = in_tiles ? tile_sums : 0,
          .activation_sums = has_scales() && !s.is_frozen() ? scale_count : 0};
}

template <class T>
void FeedForward<T>::keep(Activations& memory, const BatchShape& batch, Kept kept) {
  const TransformerShape& s = shape_;
  const Index rows = batch.batch * s.own_sequence(), n = s.stream_rows(rows);
  kept_ = kept;
  has_one_tile_ = kept == Kept::input && has_tiles(batch, s);
  const bool products = kept != Kept::input, passes = kept == Kept::all;
  const Index in_memory = has_one_tile_ ? batch.tile_rows : rows;
  hidden_ = memory.take<T>(products, "hidden", in_memory, up_.out());
  // If the half before adds more than its product, it needs all these rows after backward.
  if (norm_.exists()) {
    const Index normal_rows = has_one_tile_ && !end_.adds_apart() ? batch.tile_rows : n;
    normal_ = memory.take<T>(passes, "norm2", normal_rows, s.hidden);
    statistics_ = {memory, passes, "mean2", "rstd2", s, n};
  }
  activated_ = memory.take<T>(passes, "activated", in_memory, down().in());
  end_saved_ = end_.take(memory, products, "feed_forward_end", "feed_forward_rstd", n);
}

template <class T>
typename FeedForward<T>::Tile FeedForward<T>::tile_of(Matrix<const T> x, const PartRows& chunk,
                                                      const PartRows& tile) const {
  const auto of = [&](const Matrix<T>& activation) {
    return has_one_tile_ ? PartRows{0, tile.count, tile.is_all}.of(activation)
                         : tile.of(chunk.of(activation));
  };
  return {tile.of(chunk.of(x)),
          of(normal_),
          of(hidden_),
          of(activated_),
          statistics_.of(chunk).of(tile),
          end_saved_.of(chunk).of(tile)};
}

template <class T>
void FeedForward<T>::activate(const Execution& exec, const T* unit, const Matrix<T>& hidden,
                              const Matrix<T>& activated) const {
  switch (shape_.activation) {
    case ActivationKind::gelu:
      return kernels::gelu_forward<T>(exec, hidden, activated);
    case ActivationKind::swiglu:
      return kernels::swiglu_forward<T>(exec, hidden, activated);
    case ActivationKind::geglu:
      return kernels::geglu_forward<T>(exec, hidden, activated);
    case ActivationKind::xielu:
      return kernels::xielu_forward<T>(exec, hidden, scales(unit), activated);
  }
}

/// Computes the activations before the last product.
template <class T>
void FeedForward<T>::fill_tile(const Context<T>& c, const BlockUnits<const T>& p,
                               const Tile& tile) const {
  norm_.forward(*c.exec, p.own, tile.x, tile.normal, tile.statistics);
  up_.forward(c, p, c.all_rows(norm_.result(tile.x, tile.normal)), tile.hidden);
  activate(*c.exec, p.own, tile.hidden, tile.activated);
}

template <class T>
void FeedForward<T>::forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  for_each_chunk(pass.c, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index) {
      const Tile tile = tile_of(x, rows, part);
      fill_tile(c, pass.parameters, tile);
      end_.forward(c, pass.parameters, tile.activated, pass.dropout.feed_forward, tile.end, tile.x,
                   part.of(rows.of(y)));
    });
  });
}

template <class T>
void FeedForward<T>::recompute(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> y) {
  const Context<T>& all = pass.c;
  if (kept_ == Kept::products) {
    norm_.forward(*all.exec, pass.parameters.own, x, normal_, statistics_);
    activate(*all.exec, pass.parameters.own, hidden_, activated_);
  }
  if (kept_ != Kept::input) return;
  if (y.size() > 0 || end_.has_norm()) return forward(pass, x, y);
  if (has_one_tile_) return;  // backward computes each tile again
  for_each_chunk(all, [&](const Context<T>& chunk, const PartRows& rows, Index) {
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index) {
      fill_tile(c, pass.parameters, tile_of(x, rows, part));
    });
  });
}

/// Where a tile's gradients go: in fp32 to sums, or with one tile, and in fp32 runs without
/// adapters, to the gradients themselves. The first tile overwrites, unless an earlier
/// micro-batch's gradients are there.
template <class T>
LayerGradients<T> FeedForward<T>::of_tile(const Context<T>& chunk, const LayerGradients<T>& g,
                                          Index number) const {
  LayerGradients<T> own = g;
  own.sums = chunk.tile_sums, own.first = up_.begin();
  if (number > 0) {
    own.accumulate = Accumulate::yes;
  } else if (own.sums != nullptr) {
    own.accumulate = Accumulate::no;
  }
  return own;
}

/// Turns the gradient of the activation, in the first f columns of dhidden, into that of its
/// argument, in place.
template <class T>
void FeedForward<T>::activation_backward(const Context<T>& c, const BlockPass<T>& pass,
                                         const Tile& tile, bool is_first, Matrix<T> dhidden) const {
  switch (shape_.activation) {
    case ActivationKind::gelu:
      return kernels::gelu_backward<T>(*c.exec, tile.hidden, dhidden);
    case ActivationKind::swiglu:
      return kernels::swiglu_backward<T>(*c.exec, tile.hidden, dhidden);
    case ActivationKind::geglu:
      return kernels::geglu_backward<T>(*c.exec, tile.hidden, dhidden);
    case ActivationKind::xielu:
      return kernels::xielu_backward<T>(
          *c.exec, tile.hidden, scales(pass.parameters.own), dhidden,
          {c.activation_sums, is_first ? Accumulate::no : Accumulate::yes}, c.partial);
  }
}

/// Computes the gradients of the hidden columns [N,f or 2f], and of the second layer's adapters,
/// from the gradient of the second layer's result.
template <class T>
void FeedForward<T>::hidden_backward(const Context<T>& c, const BlockPass<T>& pass,
                                     const Tile& tile, Matrix<const T> dout, bool is_first,
                                     const LayerGradients<T>& g, Matrix<T> dhidden) const {
  if (shape_.activation == ActivationKind::gelu && !down().has_adapters())
    return down().backward_gelu(c, pass.parameters, dout, tile.hidden, dhidden);
  down().backward_input(c, pass.parameters, dout, dhidden);
  down().backward_adapters(c, pass.parameters, tile.activated, dout, g, dhidden);
  activation_backward(c, pass, tile, is_first, dhidden);
}

/// Runs backward from the gradient of the product's result, `dout`, to c.hidden_grad, this rank's
/// part of the gradient of the norm's output. `is_first`: of the chunk's tiles.
template <class T>
void FeedForward<T>::tile_backward(const Context<T>& c, const BlockPass<T>& pass, const Tile& tile,
                                   Matrix<const T> dout, bool is_first, const LayerGradients<T>& g,
                                   bool needs_input) const {
  if (!needs_input && !up_.trains())
    return down().backward_adapters(c, pass.parameters, tile.activated, dout, g, {});
  const Matrix<T> dhidden = c.wide_view(up_.out());
  down().backward_weight(c, tile.activated, dout, g);
  hidden_backward(c, pass, tile, dout, is_first, g, dhidden);
  up_.backward_bias(c, dhidden, g);
  Matrix<const T> x;
  if (up_.trains()) x = c.all_rows(norm_.result(tile.x, tile.normal));
  up_.backward_weight(c, x, dhidden, g);
  const Matrix<T> dx = needs_input ? c.hidden_grad : Matrix<T>();
  if (needs_input) up_.backward_input(c, pass.parameters, dhidden, dx);
  up_.backward_adapters(c, pass.parameters, x, dhidden, g, dx);
}

/// Rounds the tiles' sums to the gradients. Collective over the tensor group with adapters.
template <class T>
void FeedForward<T>::store_sums(const Context<T>& c, const LayerGradients<T>& g) const {
  if (c.tile_sums == nullptr) return;
  if (shape_.is_frozen()) {
    LayerGradients<T> sums = g;
    sums.sums = c.tile_sums;
    up_.store_adapter_sums(c, sums);
    down().store_adapter_sums(c, sums);
    return;
  }
  // The bias of the second layer is summed outside the tiles.
  const Index count = down().begin() + down().elements() - up_.begin();
  store_sum<T>(c, c.tile_sums, g.accumulate,
               Vector<T>(g.units.own + up_.begin(), static_cast<std::size_t>(count)));
}

/// Rounds the sums over a chunk's rows to the gradients of xIELU's scales. Every tensor rank has
/// summed its own columns. Collective over the tensor group.
template <class T>
void FeedForward<T>::store_activation_sums(const Context<T>& c, const LayerGradients<T>& g) const {
  if (!has_scales() || g.units.own == nullptr) return;
  const Vector<T> gradient(g.units.own + scales_, scale_count);
  const float* const sums = c.activation_sums.data();
  if (!c.is_split()) return store_sum<T>(c, sums, g.accumulate, gradient);
  store_sum<T>(c, sums, Accumulate::no, Vector<T>(c.partial_gradient.data(), scale_count));
  c.sum_partial_gradient(scale_count, g.accumulate, gradient.data());
}

template <class T>
bool FeedForward<T>::backward(const BlockPass<T>& pass, Matrix<const T> x,
                              const HalfGradients<T>& gradients) {
  for_each_chunk(pass.c, [&](const Context<T>& chunk, const PartRows& rows, Index number) {
    const LayerGradients<T> g = gradients.of(number);
    const Matrix<T> dx = rows.of(gradients.dx);
    const Matrix<const T> dout =
        end_.backward(chunk, pass.parameters, pass.dropout.feed_forward, end_saved_.of(rows), dx,
                      {chunk.hidden_grad.data(), dx.extent(0), dx.extent(1)}, g);
    // If dout is in the scratch memory, tiles overwrite the rows of it that they have read.
    if (!gradients.norms_sum_biases) down().backward_bias(chunk, dout, g);
    for_each_tile(chunk, [&](const Context<T>& c, const PartRows& part, Index tile_number) {
      const Tile tile = tile_of(x, rows, part);
      if (has_one_tile_) fill_tile(c, pass.parameters, tile);
      tile_backward(c, pass, tile, part.of(dout), tile_number == 0, of_tile(chunk, g, tile_number),
                    gradients.needs_input);
    });
    store_sums(chunk, g);
    store_activation_sums(chunk, g);
    if (!gradients.needs_input) return;
    NormGradients<T> of_norm{dx, Accumulate::yes, norm_.in(g.units.own), g.accumulate};
    if (gradients.norms_sum_biases) {
      of_norm.dx_before = down().in_unit(g.units.own).bias;
      of_norm.dx_after = gradients.before->in_unit(g.units.own).bias;
    }
    norm_.backward(chunk, pass.parameters.own, rows.of(x), statistics_.of(rows), of_norm);
  });
  return gradients.needs_input;
}

template <class T>
void FeedForward<T>::cache(memory::Arenas& /*arenas*/, Activations& shared,
                           const kernels::CacheShape& /*shape*/, Index rows) {
  if (norm_.exists()) {
    normal_ = shared.take<T>(false, "norm2", rows, shape_.hidden);
    statistics_ = {shared, false, "mean2", "rstd2", shape_, rows};
  }
  hidden_ = shared.take<T>(false, "hidden", rows, up_.out());
  activated_ = shared.take<T>(false, "activated", rows, down().in());
  end_saved_ = end_.take(shared, false, "feed_forward_end", "feed_forward_rstd", rows);
}

template <class T>
void FeedForward<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x,
                          Matrix<T> y) {
  const Matrix<T> normal = rows.of(normal_), hidden = rows.of(hidden_);
  const Matrix<T> activated = rows.of(activated_);
  norm_.forward(rows.exec, unit, x, normal, statistics_);
  up_.step(rows, unit, norm_.result(x, normal), hidden);
  activate(rows.exec, unit, hidden, activated);
  end_.step(rows, unit, activated, end_saved_, x, y);
}

template <class T>
Work FeedForward<T>::forward_work(const PassShape& pass) const {
  Work work(shape_, pass);
  work.operations = up_.forward_operations() + down().forward_operations();
  work.messages.gather_stream();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work FeedForward<T>::recompute_work(const PassShape& pass, Kept kept, bool is_last) const {
  Work work(shape_, pass);
  if (kept == Kept::products) {
    const Index normal = norm_.exists() ? 2 * shape_.hidden : 0;
    work.elements = static_cast<double>(normal + up_.out() + down().in());
  }
  const bool ends_before_product = is_last && !end_.has_norm();
  if (kept != Kept::input || (ends_before_product && tile_rows_ > 0)) return work;
  work.operations = up_.forward_operations();
  work.messages.gather_stream();
  if (ends_before_product) return work;
  work.operations += down().forward_operations();
  work.messages.sum_stream();
  return work;
}

template <class T>
Work FeedForward<T>::backward_work(const PassShape& pass, bool needs_input) const {
  Work work(shape_, pass);
  Messages& messages = work.messages;
  const bool reaches_up = needs_input || up_.trains();
  work.operations = down().backward_operations(reaches_up);
  end_.add_backward_messages(messages);
  if (!reaches_up) return work;
  work.operations += up_.backward_operations(needs_input);
  if (up_.trains()) messages.gather_stream();
  up_.add_gradient_messages(messages);
  if (has_scales() && !shape_.is_frozen()) messages.sum_gradient(scale_count);
  if (needs_input) norm_.add_gradient_messages(messages);
  return work;
}

template <class T>
double FeedForward<T>::recomputed_in_backward(Kept kept) const {
  const double of_tiles = kept == Kept::input && tile_rows_ > 0 ? up_.forward_operations() : 0;
  return of_tiles + up_.recomputed_operations() + down().recomputed_operations();
}

#define KZERO_INSTANTIATE(T) template class FeedForward<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
