#include "model/norm.hpp"

namespace kzero::model {

namespace {

template <class T>
kernels::NormScale scale_of(const TransformerShape& shape, const NormParams<T>& p) {
  return {shape.norm_offset, p.factor};
}

/// Sums over this rank's rows.
template <class T>
void local_backward(const Context<T>& c, const NormParams<const T>& p, Matrix<const T> x,
                    const NormStatistics& statistics, Matrix<const T> dy,
                    const NormGradients<T>& g) {
  if (c.shape.norm == NormKind::rms_norm) {
    kernels::rmsnorm_backward<T>(*c.exec, {x, p.weight, statistics.rstd, scale_of(c.shape, p)}, dy,
                                 {g.dx, g.dx_accumulate, g.parameters.weight, g.accumulate},
                                 c.partial);
  } else {
    kernels::layernorm_backward<T>(*c.exec, {x, p.weight, statistics.mean, statistics.rstd}, dy,
                                   {g.dx, g.dx_accumulate, g.parameters.weight, g.parameters.bias,
                                    g.accumulate, g.dx_before, g.dx_after},
                                   c.partial);
  }
}

}  // namespace

Index declare_norm(Declaration& d, std::string_view name) {
  const std::string path(name);
  const param::Init init = d.shape.norm_offset == 1 ? param::Init::zeros : param::Init::ones;
  const Index begin = d.own.add(vector_spec(path + ".weight", d.shape.hidden, init));
  if (d.shape.norm == NormKind::layer_norm) d.own.add(vector_spec(path + ".bias", d.shape.hidden));
  return begin;
}

NormStatistics::NormStatistics(memory::Arenas& arenas, const TransformerShape& shape, Index rows) {
  const auto take = [&] {
    return Vector<float>(arenas.take<float>(memory::Category::activations, rows), rows);
  };
  if (shape.norm == NormKind::layer_norm) mean = take();
  rstd = take();
}

NormStatistics::NormStatistics(Activations& memory, bool is_kept, const char* mean_name,
                               const char* rstd_name, const TransformerShape& shape, Index rows) {
  const auto take = [&](const char* name) {
    return Vector<float>(memory.take<float>(is_kept, name, rows, 1).data(), rows);
  };
  if (shape.norm == NormKind::layer_norm) mean = take(mean_name);
  rstd = take(rstd_name);
}

template <class T>
void norm_forward(const Execution& exec, const TransformerShape& shape,
                  const NormParams<const T>& p, Matrix<const T> x, Matrix<T> y,
                  const NormStatistics& statistics, Matrix<const T> addend) {
  if (shape.norm == NormKind::rms_norm) {
    kernels::rmsnorm_forward<T>(exec, x, p.weight, shape.norm_eps, y, statistics.rstd,
                                scale_of(shape, p), addend);
  } else {
    kernels::layernorm_forward<T>(exec, x, p.weight, p.bias, shape.norm_eps, y, statistics.mean,
                                  statistics.rstd);
  }
}

template <class T>
void norm_backward_of(const Context<T>& c, const NormParams<const T>& p, Matrix<const T> x,
                      const NormStatistics& statistics, Matrix<const T> dy,
                      const NormGradients<T>& gradients) {
  if (!c.splits_stream() || gradients.parameters.weight.size() == 0) {
    local_backward<T>(c, p, x, statistics, dy, gradients);
    return;
  }
  const NormParams<T> local = norm_at(c.shape, c.partial_gradient.data());
  local_backward<T>(c, p, x, statistics, dy,
                    {gradients.dx, gradients.dx_accumulate, local, tensor::Accumulate::no});
  c.sum_partial_gradient(c.shape.norm_elements(), gradients.accumulate,
                         gradients.parameters.weight.data());
}

template <class T>
void norm_backward(const Context<T>& c, const NormParams<const T>& p, Matrix<const T> x,
                   const NormStatistics& statistics, const NormGradients<T>& gradients) {
  norm_backward_of<T>(c, p, x, statistics, c.stream_sum(c.hidden_grad), gradients);
}

#define KZERO_INSTANTIATE(T)                                                                     \
  template void norm_forward<T>(const Execution&, const TransformerShape&,                       \
                                const NormParams<const T>&, Matrix<const T>, Matrix<T>,          \
                                const NormStatistics&, Matrix<const T>);                         \
  template void norm_backward_of<T>(const Context<T>&, const NormParams<const T>&,               \
                                    Matrix<const T>, const NormStatistics&, Matrix<const T>,     \
                                    const NormGradients<T>&);                                    \
  template void norm_backward<T>(const Context<T>&, const NormParams<const T>&, Matrix<const T>, \
                                 const NormStatistics&, const NormGradients<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
