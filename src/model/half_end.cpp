#include "model/half_end.hpp"

#include "kernels/dropout.hpp"

namespace kzero::model {

template <class T>
HalfEnd<T>::HalfEnd(Declaration& d, deck::Product product, std::string_view norm_name)
    : shape_(d.shape),
      adds_apart_(!norm_name.empty() || d.shape.drops || d.shape.residual_scale != 1),
      product_(d, product),
      norm_(d, norm_name, d.shape.residual_scale) {}

/// The statistics are kept in every mode, because backward may need them without another forward.
template <class T>
EndSaved<T> HalfEnd<T>::take(Activations& memory, bool is_kept, const char* name,
                             const char* rstd_name, Index rows) const {
  if (!has_norm()) return {};
  return {memory.take<T>(is_kept, name, rows, shape_.hidden),
          {memory, true, "", rstd_name, shape_, rows}};
}

template <class T>
void HalfEnd<T>::forward(const Context<T>& c, const BlockUnits<const T>& p, Matrix<const T> in,
                         const kernels::Dropout& dropout, const EndSaved<T>& saved,
                         Matrix<const T> x, Matrix<T> y) const {
  if (!has_norm()) return product_.forward_to_stream(c, p, in, dropout, x, y);
  product_.forward_to_stream(c, p, in, {}, {}, saved.product);
  if (y.size() > 0) norm_.forward(*c.exec, p.own, saved.product, y, saved.statistics, x);
}

template <class T>
Matrix<const T> HalfEnd<T>::backward(const Context<T>& c, const BlockUnits<const T>& p,
                                     const kernels::Dropout& dropout, const EndSaved<T>& saved,
                                     Matrix<const T> dx, Matrix<T> scratch,
                                     const LayerGradients<T>& g) const {
  if (has_norm()) {
    norm_backward_of<T>(c, norm_.in(p.own), saved.product, saved.statistics, dx,
                        {scratch, tensor::Accumulate::no, norm_.in(g.units.own), g.accumulate});
  } else if (dropout.is_on()) {
    kernels::drop<T>(*c.exec, dropout, c.stream_in_sequence(), dx, scratch);
  } else {
    return c.all_rows(dx);
  }
  return c.all_rows(scratch);
}

template <class T>
void HalfEnd<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> in,
                      const EndSaved<T>& saved, Matrix<const T> x, Matrix<T> y) const {
  if (has_norm()) {
    const Matrix<T> product = rows.of(saved.product);
    product_.step_to_stream(rows, unit, in, {}, product);
    norm_.forward(rows.exec, unit, product, y, saved.statistics, x);
  } else if (shape_.residual_scale != 1) {
    product_.step_to_stream(rows, unit, in, {}, y);
    kernels::add_dropped<T>(rows.exec, {.scale = shape_.residual_scale}, {}, x, y);
  } else {
    product_.step_to_stream(rows, unit, in, x, y);
  }
}

template <class T>
void HalfEnd<T>::add_backward_messages(Messages& messages) const {
  messages.gather_stream();
  if (has_norm()) messages.sum_norm_gradient();
  product_.add_gradient_messages(messages);
}

#define KZERO_INSTANTIATE(T) template class HalfEnd<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
