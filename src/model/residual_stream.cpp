#include "model/residual_stream.hpp"

namespace kzero::model {

using memory::Category;

template <class T>
ResidualStream<T>::ResidualStream(memory::Arenas& arenas, const GptShape& shape,
                                  const deck::Recompute& recompute, Index rows) {
  const Index width = shape.hidden;
  const auto take = [&](Category category) { return arenas.take<T>(category, rows * width); };
  if (recompute.offload == deck::Offload::host) {
    places_.assign(shape.layers + 1, {take(Category::activations), rows, width});
    for (Index i = 0; i < shape.layers; ++i)
      on_host_.emplace_back(take(Category::offloaded), rows, width);
    return;
  }
  const Category kept =
      recompute.mode == deck::RecomputeMode::block ? Category::recompute : Category::activations;
  for (Index i = 0; i <= shape.layers; ++i)
    places_.emplace_back(take(i < shape.layers ? kept : Category::activations), rows, width);
}

template <class T>
void ResidualStream<T>::keep(const tensor::Execution& exec, Index i) const {
  if (!on_host_.empty()) Kokkos::deep_copy(exec, on_host_[static_cast<std::size_t>(i)], at(i));
}

template <class T>
void ResidualStream<T>::restore(const tensor::Execution& exec, Index i) const {
  if (!on_host_.empty()) Kokkos::deep_copy(exec, at(i), on_host_[static_cast<std::size_t>(i)]);
}

template class ResidualStream<float>;
template class ResidualStream<bf16>;
template class ResidualStream<fp16>;

}  // namespace kzero::model
