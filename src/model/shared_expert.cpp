#include "model/shared_expert.hpp"

#include "kernels/expert_rows.hpp"
#include "kernels/gated.hpp"

namespace kzero::model {

template <class T>
SharedExpert<T>::SharedExpert(Declaration& d) {
  const ExpertSettings& s = d.shape.experts;
  if (s.shared_width == 0) return;
  const FeedForwardPart part{std::string(deck::shared_expert(s.shared_gate)),
                             d.extents.shared_expert};
  up_ = Linear<T>(d, deck::Product::up, part);
  down_ = Linear<T>(d, deck::Product::down, part);
}

template <class T>
void SharedExpert<T>::keep(Activations& memory, bool products, bool passes, Index chunks,
                           Index rows) {
  if (!exists()) return;
  rows_ = rows;
  hidden_ = memory.take<T>(products, "shared_hidden", chunks * rows, hidden_columns());
  activated_ = memory.take<T>(passes, "shared_activated", chunks * rows, active_columns());
}

template <class T>
void SharedExpert<T>::fill(const Context<T>& c, const BlockUnits<const T>& p,
                           Matrix<const T> normal, Index chunk) {
  if (!exists()) return;
  up_.forward(c, p, normal, of_chunk(hidden_, chunk));
  activate(*c.exec, chunk);
}

template <class T>
void SharedExpert<T>::activate(const Execution& exec, Index chunk) {
  if (exists())
    kernels::swiglu_forward<T>(exec, of_chunk(hidden_, chunk), of_chunk(activated_, chunk));
}

template <class T>
void SharedExpert<T>::forward(const Context<T>& c, const BlockUnits<const T>& p, Index chunk,
                              Matrix<T> y) const {
  down_.forward(c, p, of_chunk(activated_, chunk), y);
}

template <class T>
void SharedExpert<T>::hidden_backward(const Context<T>& c, const BlockUnits<const T>& p,
                                      Index chunk, Matrix<const T> dout, Matrix<const float> gates,
                                      Matrix<float> dgates, const LayerGradients<T>& g,
                                      Matrix<T> dhidden) {
  const Matrix<T> activated = of_chunk(activated_, chunk);
  down_.backward_input(c, p, dout, dhidden);
  if (gates.size() > 0) kernels::gate_backward<T>(*c.exec, {}, gates, activated, dhidden, dgates);
  down_.backward_weight(c, activated, dout, g);
  kernels::swiglu_backward<T>(*c.exec, of_chunk(hidden_, chunk), dhidden);
}

template <class T>
void SharedExpert<T>::input_backward(const Context<T>& c, const BlockUnits<const T>& p,
                                     Matrix<const T> normal, Matrix<const T> dhidden,
                                     const LayerGradients<T>& g, Matrix<T> dx) const {
  if (up_.trains()) up_.backward_weight(c, normal, dhidden, g);
  up_.backward_input(c, p, dhidden, dx);
}

template <class T>
void SharedExpert<T>::cache(Activations& shared, Index rows) {
  if (!exists()) return;
  hidden_ = shared.take<T>(false, "shared_hidden", rows, hidden_columns());
  activated_ = shared.take<T>(false, "shared_activated", rows, active_columns());
}

template <class T>
void SharedExpert<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<const T> normal,
                           Matrix<T> y) const {
  const Matrix<T> hidden = rows.of(hidden_), activated = rows.of(activated_);
  up_.step(rows, unit, normal, hidden);
  kernels::swiglu_forward<T>(rows.exec, hidden, activated);
  down_.step(rows, unit, activated, y);
}

#define KZERO_INSTANTIATE(T) template class SharedExpert<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
