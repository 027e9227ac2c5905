#include "model/norm.hpp"

namespace kzero::model {

template <class T>
void norm_backward(const Context<T>& c, const kernels::LayerNormInput<T>& input,
                   const kernels::LayerNormGradients<T>& gradients) {
  const Matrix<T> dy = c.stream_sum(c.hidden_grad);
  if (!c.splits_stream()) {
    kernels::layernorm_backward<T>(*c.exec, input, dy, gradients, c.partial);
    return;
  }
  // Every rank has summed over its own rows only.
  const Index d = c.shape.hidden;
  T* scratch = c.norm_gradient.data();
  kernels::layernorm_backward<T>(*c.exec, input, dy,
                                 {gradients.dx, gradients.dx_update, Vector<T>(scratch, d),
                                  Vector<T>(scratch + d, d), kernels::Update::overwrite},
                                 c.partial);
  const bool adds = gradients.update == kernels::Update::add;
  T* sum = gradients.dweight.data();
  c.group.all_reduce(*c.exec, Matrix<T>(scratch, 2 * d, 1), nullptr, adds ? sum : nullptr,
                     Matrix<T>(sum, 2 * d, 1));
}

#define KZERO_INSTANTIATE(T)                                                           \
  template void norm_backward<T>(const Context<T>&, const kernels::LayerNormInput<T>&, \
                                 const kernels::LayerNormGradients<T>&);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
