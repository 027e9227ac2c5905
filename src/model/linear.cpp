#include "model/linear.hpp"

#include <algorithm>
#include <string>

#include "kernels/few_rows.hpp"
#include "kernels/gelu.hpp"
#include "kernels/initialize.hpp"
#include "kernels/pairwise_sum.hpp"

namespace kzero::model {

using deck::Product;
using deck::ProductPart;
using tensor::Accumulate;
using tensor::operand;
using tensor::Transpose;

namespace {

/// A layer's outputs as `groups` equal parts, each split over the tensor ranks as `extent`.
struct Outputs {
  Index groups;
  Extent extent;
};

Outputs outputs_of(const Declaration& d, const deck::LinearLayer& layer,
                   const Extent& feed_forward) {
  const Extents& e = d.extents;
  switch (layer.part) {
    case ProductPart::q:
      return {1, e.width};
    case ProductPart::k:
    case ProductPart::v:
      return {1, e.kv_width};
    case ProductPart::gate:
    case ProductPart::up:
      return {1, feed_forward};
    case ProductPart::all:
      break;
  }
  if (layer.product == Product::qkv) return {3, e.width};
  if (layer.product == Product::up) return {1, feed_forward};
  return {1, {d.shape.hidden, 0, d.shape.hidden}};
}

Extent inputs_of(const Declaration& d, Product product, const Extent& feed_forward) {
  if (product == Product::projection) return d.extents.width;
  if (product == Product::down) return feed_forward;
  return {d.shape.hidden, 0, d.shape.hidden};
}

/// Whether W's rows are its inputs, [in,out].
bool is_in_out(WeightLayout layout) { return layout == WeightLayout::in_out; }

/// Whether a layer belongs to a product. An activation without a gate has no layer for it.
bool belongs_to(const deck::LinearLayer& layer, Product product, const TransformerShape& shape) {
  const bool has_gate = shape.has_gate();
  return layer.product == product && (layer.part != ProductPart::gate || has_gate);
}

/// A layer's W. Its rows are its inputs or its outputs. A row-parallel layer is split by its
/// inputs, and others by their outputs.
param::ParamSpec weight_spec(const Declaration& d, const deck::LinearLayer& layer,
                             const std::string& path, const Extent& feed_forward,
                             bool is_row_parallel) {
  const std::string name = path + ".weight";
  const auto [groups, out] = outputs_of(d, layer, feed_forward);
  const Extent in = inputs_of(d, layer.product, feed_forward);
  const double std = is_row_parallel ? d.residual_std : d.std;
  const Extent& split = is_row_parallel ? in : out;
  const Index others = is_row_parallel ? out.total : in.total;
  param::ParamSpec weight =
      is_in_out(d.shape.weight_layout) == is_row_parallel
          ? split_by_rows(name, split, others, std)
          : split_by_columns(name, others, is_row_parallel ? 1 : groups, split, std);
  weight.matrices = groups;
  return weight;
}

/// Computes dx = dy W^T in the first columns of dx.
template <class T>
tensor::GemmProblem input_gradient(WeightLayout layout, Matrix<const T> dy, Matrix<const T> weight,
                                   Matrix<T> dx) {
  tensor::GemmProblem p;
  p.m = dx.extent(0), p.n = weight.extent(is_in_out(layout) ? 0 : 1), p.k = dy.extent(1);
  p.a = operand(dy);
  p.b = operand(weight, is_in_out(layout) ? Transpose::yes : Transpose::no);
  p.c = dx.data(), p.c_stride = dx.extent(1);
  p.in = p.out = dtype_of<T>;
  return p;
}

/// The GEMM of y [N,out] = x [N,in] W + b (+ addend [N,out] if given).
template <class T>
tensor::GemmProblem forward_product(WeightLayout layout, Matrix<const T> x,
                                    const LinearParams<const T>& layer, Matrix<T> y,
                                    const T* addend) {
  tensor::GemmProblem p;
  p.m = y.extent(0), p.n = y.extent(1), p.k = x.extent(1);
  p.a = operand(x);
  p.b = operand(layer.weight, is_in_out(layout) ? Transpose::no : Transpose::yes);
  p.c = y.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  p.bias = layer.bias.data();
  p.addend = addend;
  return p;
}

}  // namespace

template <class T>
Linear<T>::Linear(Declaration& d, Product product, const std::optional<FeedForwardPart>& part)
    : product_(product),
      layout_(d.shape.weight_layout),
      has_bias_(product == Product::qkv ? d.shape.qkv_bias : d.shape.biases),
      is_frozen_(d.shape.is_frozen()),
      own_columns_(d.shape.own.width) {
  const Extent& width = part ? part->width : d.extents.feed_forward;
  in_ = inputs_of(d, product, width).length;
  begin_ = d.own.elements();
  const auto layers = deck::linear_layers(d.family.family);
  for (const deck::LinearLayer& layer : layers) {
    if (!belongs_to(layer, product, d.shape)) continue;
    const auto [groups, out] = outputs_of(d, layer, width);
    const std::string path = part ? deck::path_in(part->name, layer) : std::string(layer.path);
    d.own.add(weight_spec(d, layer, path, width, is_row_parallel()));
    const bool is_copied = layer.part == ProductPart::k || layer.part == ProductPart::v;
    const Index copies = is_copied ? d.shape.own.kv_copies : 1;
    copies_ = std::max(copies_, copies);
    if (!part && d.shape.adapters.has(layer.name()))
      adapters_.push_back(declare_adapter(
          d, {layer.path, inputs_of(d, product, width), groups, out},
          {.column = out_, .copies = copies, .is_row_parallel = is_row_parallel()}));
    out_ += groups * out.length;
  }
  for (const deck::LinearLayer& layer : layers) {
    if (!has_bias_ || !belongs_to(layer, product, d.shape)) continue;
    const auto [groups, out] = outputs_of(d, layer, width);
    d.own.add(bias_spec(std::string(layer.path) + ".bias", groups, out));
  }
}

template <class T>
void Linear<T>::multiply(const Context<T>& c, Matrix<const T> x, const LinearParams<const T>& layer,
                         const T* addend, Matrix<T> y) const {
  c.gemm->run(*c.exec, forward_product<T>(layout_, x, layer, y, addend));
}

template <class T>
void Linear<T>::forward(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> x,
                        Matrix<T> y) const {
  multiply(c, x, in_unit(p.own), nullptr, y);
  for (const Adapter& adapter : adapters_) adapter_forward<T>(c, adapter, p.adapters, x, y);
}

template <class T>
void Linear<T>::forward_to_stream(const Context<T>& c, const BlockUnits<const T>& p,
                                  Matrix<const T> x, const kernels::Dropout& dropout,
                                  Matrix<const T> addend, Matrix<T> y) const {
  const LinearParams<const T> layer = in_unit(p.own);
  const T* const added = dropout.is_on() ? nullptr : addend.data();
  const Matrix<T> share = c.is_split() ? c.hidden_grad : y;  // this rank's part of the sum
  if (c.is_split()) {
    multiply(c, x, {layer.weight, {}}, nullptr, share);
  } else {
    multiply(c, x, layer, added, share);
  }
  for (const Adapter& adapter : adapters_) adapter_forward<T>(c, adapter, p.adapters, x, share);
  if (c.is_split()) c.sum_to_stream(share, layer.bias.data(), added, y);
  if (dropout.is_on()) kernels::add_dropped<T>(*c.exec, dropout, c.stream_in_sequence(), addend, y);
}

template <class T>
void Linear<T>::sum_copies(const Context<T>& c, const T* local, Index width, Accumulate accumulate,
                           T* gradient) const {
  const Index own = own_columns_ * width;
  c.group.sum_of_copies(*c.exec, 1, local, own, accumulate, gradient);
  c.group.sum_of_copies(*c.exec, copies_, local + own, (out_ - own_columns_) * width, accumulate,
                        gradient + own);
}

template <class T>
void Linear<T>::backward_weight(const Context<T>& c, Matrix<const T> x, Matrix<const T> dy,
                                const LayerGradients<T>& g) const {
  const Matrix<T> dweight = in_unit(g.units.own).weight;
  if (dweight.size() == 0) return;
  tensor::GemmProblem p;
  p.m = dweight.extent(0), p.n = dweight.extent(1), p.k = x.extent(0);
  p.a = operand(is_in_out(layout_) ? x : dy, Transpose::yes);
  p.b = operand(is_in_out(layout_) ? dy : x);
  p.c = dweight.data(), p.c_stride = p.n;
  p.in = p.out = dtype_of<T>;
  p.accumulate = g.accumulate;
  if (g.sums != nullptr) p.c = g.sums + (begin_ - g.first), p.out = Dtype::fp32;
  if (copies_ > 1) p.c = c.partial_gradient.data(), p.accumulate = Accumulate::no;
  c.gemm->run(*c.exec, p);
  if (copies_ > 1) sum_copies(c, c.partial_gradient.data(), in_, g.accumulate, dweight.data());
}

template <class T>
void Linear<T>::backward_bias(const Context<T>& c, Matrix<const T> dy,
                              const LayerGradients<T>& g) const {
  const Vector<T> dbias = in_unit(g.units.own).bias;
  if (dbias.size() == 0) return;
  if (g.sums != nullptr) {
    const Vector<float> sum(g.sums + (begin_ + elements() - g.first), dbias.size());
    kernels::sum_rows<T>(*c.exec, dy, g.accumulate, sum, c.partial);
  } else if (copies_ > 1) {
    const Vector<T> local(c.partial_gradient.data(), dbias.size());
    kernels::sum_rows<T>(*c.exec, dy, Accumulate::no, local, c.partial);
    sum_copies(c, local.data(), 1, g.accumulate, dbias.data());
  } else {
    kernels::sum_rows<T>(*c.exec, dy, g.accumulate, dbias, c.partial);
  }
}

template <class T>
void Linear<T>::backward_input(const Context<T>& c, const BlockUnits<const T>& p,
                               Matrix<const T> dy, Matrix<T> dx) const {
  c.gemm->run(*c.exec, input_gradient<T>(layout_, dy, in_unit(p.own).weight, dx));
}

template <class T>
void Linear<T>::backward_gelu(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> dy,
                              Matrix<const T> hidden, Matrix<T> dx) const {
  tensor::GemmProblem product = input_gradient<T>(layout_, dy, in_unit(p.own).weight, dx);
  const bool is_fused = c.gemm->fuses_gelu_gradient(product.in, product.n);
  if (is_fused) product.gelu_input = hidden.data();
  c.gemm->run(*c.exec, product);
  if (!is_fused) kernels::gelu_backward<T>(*c.exec, hidden, dx);
}

template <class T>
void Linear<T>::backward_adapters(const Context<T>& c, const BlockUnits<const T>& p,
                                  Matrix<const T> x, Matrix<const T> dy, const LayerGradients<T>& g,
                                  Matrix<T> dx) const {
  for (const Adapter& adapter : adapters_)
    adapter_backward<T>(c, adapter, {x, dy, p.adapters, g.units.adapters, g.accumulate, g.sums},
                        dx);
}

template <class T>
void Linear<T>::store_adapter_sums(const Context<T>& c, const LayerGradients<T>& g) const {
  for (const Adapter& adapter : adapters_)
    model::store_adapter_sums<T>(c, adapter, g.sums, g.accumulate, g.units.adapters);
}

template <class T>
void Linear<T>::step_product(const CachedRows<T>& rows, const LinearParams<const T>& layer,
                             Matrix<const T> x, const T* addend, Matrix<T> y) const {
  if (rows.products == Products::library) {
    rows.gemm->run(rows.exec, forward_product<T>(layout_, x, layer, y, addend));
    return;
  }
  const auto order =
      is_in_out(layout_) ? kernels::WeightOrder::in_out : kernels::WeightOrder::out_in;
  kernels::few_rows_product<T, T>(rows.exec, {x, layer.weight, order, layer.bias.data(), addend},
                                  y);
}

template <class T>
void Linear<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> x,
                     Matrix<T> y) const {
  step_product(rows, in_unit(unit), x, nullptr, y);
}

template <class T>
void Linear<T>::step_to_stream(const CachedRows<T>& rows, const T* unit, Matrix<const T> x,
                               Matrix<const T> addend, Matrix<T> y) const {
  const LinearParams<const T> layer = in_unit(unit);
  if (rows.group.size() == 1) {
    step_product(rows, layer, x, addend.data(), y);
    return;
  }
  const Matrix<T> share(rows.share, y.extent(0), y.extent(1));
  step_product(rows, {layer.weight, {}}, x, nullptr, share);
  rows.group.all_reduce(rows.exec, share, layer.bias.data(), addend.data(), y);
}

template <class T>
double Linear<T>::forward_operations() const {
  Index parameters = elements();
  for (const Adapter& adapter : adapters_) parameters += adapter.elements();
  return 2 * static_cast<double>(parameters);
}

template <class T>
double Linear<T>::backward_operations(bool needs_input) const {
  Index parameters = elements() * ((is_frozen_ ? 0 : 1) + (needs_input ? 1 : 0));
  for (const Adapter& adapter : adapters_)
    parameters += 2 * adapter.elements() - (needs_input ? 0 : adapter.inner());
  return 2 * static_cast<double>(parameters);
}

template <class T>
double Linear<T>::recomputed_operations() const {
  Index parameters = 0;
  for (const Adapter& adapter : adapters_) parameters += adapter.inner();
  return 2 * static_cast<double>(parameters);
}

template <class T>
void Linear<T>::add_gradient_messages(Messages& messages) const {
  for (const Adapter& a : adapters_) {
    messages.sum_gradient(a.rank * (a.is_row_parallel ? a.out : a.in));
    messages.sum_gradient_of_copies(a.rank * a.out, a.copies);
  }
  if (!is_frozen_)
    messages.sum_gradient_of_copies((out_ - own_columns_) * (in_ + (has_bias_ ? 1 : 0)), copies_);
}

template <class T>
Index Linear<T>::partial_gradient() const {
  if (!is_frozen_) return copies_ > 1 ? elements() + (has_bias_ ? out_ : 0) : 0;
  Index largest = 0;
  for (const Adapter& a : adapters_) {
    if (a.is_row_parallel || a.copies > 1) largest = std::max(largest, a.rank * a.out);
    if (!a.is_row_parallel) largest = std::max(largest, a.rank * a.in);
  }
  return largest;
}

template <class T>
void store_sum(const Context<T>& c, const float* sum, Accumulate accumulate, const Vector<T>& out) {
  if (accumulate == Accumulate::no) {
    kernels::round_to<T>(*c.exec, Vector<const float>(sum, out.size()), out);
  } else {
    kernels::add_terms<T, T>(*c.exec, {.own = out.data()}, {.first = 1, .block = 2},
                             {.oldest = const_cast<float*>(sum)}, out);
  }
}

#define KZERO_INSTANTIATE(T) \
  template class Linear<T>;  \
  template void store_sum<T>(const Context<T>&, const float*, tensor::Accumulate, const Vector<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
