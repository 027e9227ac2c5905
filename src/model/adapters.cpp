#include "model/adapters.hpp"

#include "kernels/scale.hpp"
#include "model/linear.hpp"

namespace kzero::model {

namespace {

using tensor::Accumulate;
using tensor::operand;
using tensor::Operand;
using tensor::Transpose;

/// A and B, or their gradients.
template <class T>
struct Adapter {
  Matrix<T> a, b;  // [r,in] [out,r]

  Adapter(const Adapters& all, const AdapterShape& shape, T* unit)
      : a(unit + shape.begin, all.rank, shape.in),
        b(a.data() + all.rank * shape.in, shape.out, all.rank) {}
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
void scale(const Context<T>& c, Matrix<T> x) {
  if (const float factor = c.shape.adapters.scale; factor != 1)
    kernels::scale_by<T>(*c.exec, factor, Vector<T>(x.data(), x.size()));
}

/// Computes h = scale * x A^T [N,r].
template <class T>
void compress(const Context<T>& c, Matrix<const T> x, Matrix<const T> a, Matrix<T> h) {
  const Index rank = c.shape.adapters.rank;
  multiply<T>(c, c.rows, rank, a.extent(1), operand(x), operand(a, Transpose::yes), h.data(), rank,
              Accumulate::no);
  scale(c, h);
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
Index copies_of_a(const AdapterShape& shape) { return shape.is_row_parallel() ? 1 : 0; }
Index copies_of_b(const AdapterShape& shape) { return shape.is_row_parallel() ? 0 : shape.copies; }

template <class T>
void adapter_backward(const Context<T>& c, const AdapterShape& shape, const AdapterGradients<T>& g,
                      Matrix<T> dx) {
  const Index rank = c.shape.adapters.rank, n = c.rows;
  const Adapter<const T> p(c.shape.adapters, shape, g.unit);
  const Adapter<T> d(c.shape.adapters, shape, g.gradients);
  const Index stride = g.dy.extent(1);
  const T* dy = g.dy.data() + shape.column;
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

  compress<T>(c, g.x, p.a, c.adapter_hidden);
  add(copies_of_b(shape), {dy, stride, Transpose::yes}, operand(c.adapter_hidden), d.b);
  const Matrix<T>& dh = c.adapter_grad;
  multiply<T>(c, n, rank, shape.out, {dy, stride, Transpose::no}, operand(p.b), dh.data(), rank,
              Accumulate::no);
  scale(c, dh);
  add(copies_of_a(shape), operand(dh, Transpose::yes), operand(g.x), d.a);
  if (dx.size() > 0)
    multiply<T>(c, n, shape.in, rank, operand(dh), operand(p.a), dx.data(), dx.extent(1),
                Accumulate::yes);
}

}  // namespace

template <class T>
void adapters_forward(const Context<T>& c, Site site, const T* unit, Matrix<const T> x,
                      Matrix<T> y) {
  for (const AdapterShape& shape : c.shape.adapters.layers) {
    if (shape.layer.site != site) continue;
    const Adapter<const T> p(c.shape.adapters, shape, unit);
    compress<T>(c, x, p.a, c.adapter_hidden);
    multiply<T>(c, c.rows, shape.out, c.shape.adapters.rank, operand(c.adapter_hidden),
                operand(p.b, Transpose::yes), y.data() + shape.column, y.extent(1),
                Accumulate::yes);
  }
}

template <class T>
void adapters_backward(const Context<T>& c, Site site, const AdapterGradients<T>& g, Matrix<T> dx) {
  for (const AdapterShape& shape : c.shape.adapters.layers) {
    if (shape.layer.site == site) adapter_backward<T>(c, shape, g, dx);
  }
}

template <class T>
void store_adapter_sums(const Context<T>& c, Site site, const float* sums,
                        tensor::Accumulate accumulate, const BlockParams<T>& g) {
  const auto store = [&](Index copies, Matrix<T> gradient) {
    const float* sum = sums + (gradient.data() - g.adapters);
    sum_over_group<T>(c, copies, accumulate, gradient, [&](T* to, Accumulate how) {
      store_sum<T>(c, sum, how, Vector<T>(to, gradient.size()));
    });
  };
  for (const AdapterShape& shape : c.shape.adapters.layers) {
    if (shape.layer.site != site) continue;
    const Adapter<T> d(c.shape.adapters, shape, g.adapters);
    store(copies_of_b(shape), d.b);
    store(copies_of_a(shape), d.a);
  }
}

template <class T>
void adapted_row_parallel_forward(const Context<T>& c, Site site, const BlockParams<const T>& p,
                                  Matrix<const T> x, const T* addend, Matrix<T> y) {
  const Linear<const T>& layer = site == Site::projection ? p.projection : p.down;
  if (!c.shape.adapters.has(site)) {
    row_parallel_forward<T>(c, x, layer, addend, y);
    return;
  }
  if (!c.is_split()) {
    linear_forward<T>(c, x, layer, y, addend);
    adapters_forward<T>(c, site, p.adapters, x, y);
    return;
  }
  linear_forward<T>(c, x, {layer.weight, {}}, c.hidden_grad);
  adapters_forward<T>(c, site, p.adapters, x, c.hidden_grad);
  c.sum_to_stream(c.hidden_grad, layer.bias.data(), addend, y);
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void adapters_forward<T>(const Context<T>&, Site, const T*, Matrix<const T>,          \
                                    Matrix<T>);                                                  \
  template void adapters_backward<T>(const Context<T>&, Site, const AdapterGradients<T>&,        \
                                     Matrix<T>);                                                 \
  template void store_adapter_sums<T>(const Context<T>&, Site, const float*, tensor::Accumulate, \
                                      const BlockParams<T>&);                                    \
  template void adapted_row_parallel_forward<T>(                                                 \
      const Context<T>&, Site, const BlockParams<const T>&, Matrix<const T>, const T*, Matrix<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
