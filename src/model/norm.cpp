#include "model/norm.hpp"

#include "kernels/layernorm.hpp"

namespace kzero::model {

template <class T>
void norm_backward(const Context<T>& c, Matrix<const T> x, Vector<const T> weight,
                   Vector<const float> mean, Vector<const float> rstd, kernels::Update dx_mode,
                   Matrix<T> dx, kernels::Update update, Vector<T> dweight, Vector<T> dbias) {
  const Matrix<T> dy = c.stream_sum(c.hidden_grad);
  if (!c.splits_stream()) {
    kernels::layernorm_backward<T>(*c.exec, x, weight, mean, rstd, dy, dx_mode, dx, update, dweight,
                                   dbias, c.partial);
    return;
  }
  // Every rank has seen its rows only.
  const Index d = c.shape.hidden;
  T* scratch = c.norm_gradient.data();
  kernels::layernorm_backward<T>(*c.exec, x, weight, mean, rstd, dy, dx_mode, dx,
                                 kernels::Update::overwrite, Vector<T>(scratch, d),
                                 Vector<T>(scratch + d, d), c.partial);
  const bool adds = update == kernels::Update::add;
  c.group.all_reduce(*c.exec, Matrix<T>(scratch, 2 * d, 1), nullptr,
                     adds ? dweight.data() : nullptr, Matrix<T>(dweight.data(), 2 * d, 1));
}

#define KZERO_INSTANTIATE(T)                                                                \
  template void norm_backward<T>(const Context<T>&, Matrix<const T>, Vector<const T>,       \
                                 Vector<const float>, Vector<const float>, kernels::Update, \
                                 Matrix<T>, kernels::Update, Vector<T>, Vector<T>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
