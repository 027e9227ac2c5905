#include "model/adapters.hpp"

#include <cmath>
#include <utility>

#include "kernels/scale.hpp"
#include "model/linear.hpp"

namespace kzero::model {

namespace {

using tensor::Accumulate;
using tensor::operand;
using tensor::Operand;
using tensor::Transpose;

/// A [r,in] and B [out,r], or their gradients.
template <class T>
struct Matrices {
  Matrix<T> a, b;

  Matrices(const Adapter& adapter, T* unit)
      : a(unit + adapter.begin, adapter.rank, adapter.in),
        b(a.data() + adapter.inner(), adapter.out, adapter.rank) {}
};

/// Runs C (=|+=) op(A) op(B) [m,n] over k, with C's rows c_stride apart. C is T or float.
template <class T, class Out>
void multiply(const Context<T>& c, Index m, Index n, Index k, const Operand& a, const Operand& b,
              Out* to, Index stride, Accumulate accumulate) {
  tensor::GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = a, p.b = b;
  p.c = to, p.c_stride = stride;
  p.in = dtype_of<T>, p.out = dtype_of<Out>;
  p.accumulate = accumulate;
  c.gemm->run(*c.exec, p);
}

template <class T>
void scale_by(const Context<T>& c, float factor, Matrix<T> x) {
  if (factor != 1) kernels::scale_by<T>(*c.exec, factor, Vector<T>(x.data(), x.size()));
}

/// Computes h = scale * x A^T [N,r].
template <class T>
void compress(const Context<T>& c, const Adapter& adapter, Matrix<const T> x, Matrix<const T> a,
              Matrix<T> h) {
  multiply<T>(c, c.rows, adapter.rank, a.extent(1), operand(x), operand(a, Transpose::yes),
              h.data(), adapter.rank, Accumulate::no);
  scale_by(c, adapter.scale, h);
}

/// Computes gradient (=|+=) a product whose sum over `copies` tensor ranks it is; 1: this rank's
/// alone, 0: all. `product` writes a matrix, or adds to it.
template <class T, class Product>
void sum_over_group(const Context<T>& c, Index copies, Accumulate accumulate, Matrix<T> gradient,
                    const Product& product) {
  if (!c.is_split() || copies == 1) {
    product(gradient.data(), accumulate);
    return;
  }
  product(c.partial_gradient.data(), Accumulate::no);
  const auto elements = static_cast<Index>(gradient.size());
  if (copies == 0) {
    c.sum_partial_gradient(elements, accumulate, gradient.data());
  } else {
    c.group.sum_of_copies(*c.exec, copies, c.partial_gradient.data(), elements, accumulate,
                          gradient.data());
  }
}

/// The tensor ranks over whose products the gradients of A and of B are sums: see sum_over_group.
Index copies_of_a(const Adapter& adapter) { return adapter.is_row_parallel ? 1 : 0; }
Index copies_of_b(const Adapter& adapter) { return adapter.is_row_parallel ? 0 : adapter.copies; }

}  // namespace

Adapter declare_adapter(Declaration& block, const AdaptedLayer& layer, Adapter adapter) {
  using param::Init;
  using param::ParamSpec;
  adapter.rank = block.shape.adapters.rank, adapter.scale = block.shape.adapters.scale;
  adapter.in = layer.in.length, adapter.out = layer.groups * layer.out.length;
  const Index rank = adapter.rank;
  const std::string name(layer.path);
  const double bound = 1 / std::sqrt(static_cast<double>(layer.in.total));
  ParamSpec a = split_by_columns(name + ".lora_A.weight", rank, 1, layer.in, bound);
  if (layer.in.length == layer.in.total) a.split = ParamSpec::full(a.shape);
  a.init = Init::uniform;
  adapter.begin = block.adapters.add(std::move(a));
  const Extent& out = layer.out;
  ParamSpec b = matrix_spec(name + ".lora_B.weight", layer.groups * out.total, rank, 0);
  b.init = Init::zeros;
  if (out.length < out.total)
    b.split = {layer.groups, out.total * rank, out.begin * rank, out.length * rank, out.copy};
  block.adapters.add(std::move(b));
  return adapter;
}

template <class T>
void adapter_forward(const Context<T>& c, const Adapter& adapter, const T* unit, Matrix<const T> x,
                     Matrix<T> y) {
  const Matrices<const T> p(adapter, unit);
  compress<T>(c, adapter, x, p.a, c.adapter_hidden);
  multiply<T>(c, c.rows, adapter.out, adapter.rank, operand(c.adapter_hidden),
              operand(p.b, Transpose::yes), y.data() + adapter.column, y.extent(1),
              Accumulate::yes);
}

template <class T>
void adapter_backward(const Context<T>& c, const Adapter& adapter, const AdapterGradients<T>& g,
                      Matrix<T> dx) {
  const Index rank = adapter.rank, n = c.rows;
  const Matrices<const T> p(adapter, g.unit);
  const Matrices<T> d(adapter, g.gradients);
  const Index stride = g.dy.extent(1);
  const T* dy = g.dy.data() + adapter.column;
  const auto add = [&](Index copies, const Operand& a, const Operand& b, Matrix<T> gradient) {
    const Index rows = gradient.extent(0), columns = gradient.extent(1);
    const auto multiply_into = [&](auto* to, Accumulate accumulate) {
      multiply<T>(c, rows, columns, n, a, b, to, columns, accumulate);
    };
    if (g.sums != nullptr) {
      multiply_into(g.sums + (gradient.data() - g.gradients), g.accumulate);
    } else {
      sum_over_group<T>(c, copies, g.accumulate, gradient, multiply_into);
    }
  };

  compress<T>(c, adapter, g.x, p.a, c.adapter_hidden);
  add(copies_of_b(adapter), {dy, stride, Transpose::yes}, operand(c.adapter_hidden), d.b);
  const Matrix<T>& dh = c.adapter_grad;
  multiply<T>(c, n, rank, adapter.out, {dy, stride, Transpose::no}, operand(p.b), dh.data(), rank,
              Accumulate::no);
  scale_by(c, adapter.scale, dh);
  add(copies_of_a(adapter), operand(dh, Transpose::yes), operand(g.x), d.a);
  if (dx.size() > 0)
    multiply<T>(c, n, adapter.in, rank, operand(dh), operand(p.a), dx.data(), dx.extent(1),
                Accumulate::yes);
}

template <class T>
void store_adapter_sums(const Context<T>& c, const Adapter& adapter, const float* sums,
                        Accumulate accumulate, T* gradients) {
  const auto store = [&](Index copies, Matrix<T> gradient) {
    const float* sum = sums + (gradient.data() - gradients);
    sum_over_group<T>(c, copies, accumulate, gradient, [&](T* to, Accumulate how) {
      store_sum<T>(c, sum, how, Vector<T>(to, gradient.size()));
    });
  };
  const Matrices<T> d(adapter, gradients);
  store(copies_of_b(adapter), d.b);
  store(copies_of_a(adapter), d.a);
}

#define KZERO_INSTANTIATE(T)                                                                       \
  template void adapter_forward<T>(const Context<T>&, const Adapter&, const T*, Matrix<const T>,   \
                                   Matrix<T>);                                                     \
  template void adapter_backward<T>(const Context<T>&, const Adapter&, const AdapterGradients<T>&, \
                                    Matrix<T>);                                                    \
  template void store_adapter_sums<T>(const Context<T>&, const Adapter&, const float*,             \
                                      tensor::Accumulate, T*);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
