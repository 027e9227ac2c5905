#include "model/residual_stream.hpp"

namespace kzero::model {

using memory::Category;

template <class T>
ResidualStream<T>::ResidualStream(memory::Arenas& arenas, const GptShape& shape,
                                  const deck::Recompute& recompute, Index rows,
                                  const TensorGroup<T>& group)
    : group_(group), own_rows_(rows), is_cut_(recompute.partition && group.size() > 1) {
  const Index width = shape.hidden;
  const auto take = [&](Category category, Index count) {
    return Matrix<T>(arenas.take<T>(category, count * width), count, width);
  };
  if (is_cut_) {
    first_row_ = shape.first_row(rows, group.rank());
    own_rows_ = shape.own_rows(rows);
  }
  const bool on_host = recompute.offload == deck::Offload::host;
  if (!on_host && !is_cut_) {
    const bool is_block = recompute.mode == deck::RecomputeMode::block;
    const Category kept = is_block ? Category::recompute : Category::activations;
    for (Index i = 0; i <= shape.layers; ++i)
      places_.push_back(take(i < shape.layers ? kept : Category::activations, rows));
    return;
  }
  places_.assign(shape.layers + 1, take(Category::activations, rows));
  for (Index i = 0; i < shape.layers; ++i) {
    if (on_host) {
      on_host_.emplace_back(take(Category::offloaded, own_rows_).data(), own_rows_, width);
    } else {
      kept_.push_back(take(Category::recompute, own_rows_));
    }
  }
}

/// This rank's rows of what lies where block i reads.
template <class T>
Matrix<T> ResidualStream<T>::own_part(Index i) const {
  const Matrix<T>& all = at(i);
  return {all.data() + first_row_ * static_cast<Index>(all.extent(1)),
          static_cast<std::size_t>(own_rows_), all.extent(1)};
}

template <class T>
void ResidualStream<T>::keep(const Execution& exec, Index i) const {
  const auto block = static_cast<std::size_t>(i);
  if (!on_host_.empty()) Kokkos::deep_copy(exec, on_host_[block], own_part(i));
  if (!kept_.empty()) Kokkos::deep_copy(exec, kept_[block], own_part(i));
}

template <class T>
void ResidualStream<T>::restore(const Execution& exec, Index i) const {
  const auto block = static_cast<std::size_t>(i);
  if (!on_host_.empty()) Kokkos::deep_copy(exec, own_part(i), on_host_[block]);
  if (!is_cut_) return;
  const T* own = kept_.empty() ? own_part(i).data() : kept_[block].data();
  group_.all_gather(exec, own, at(i), comm::Purpose::checkpointed_activations);
}

template class ResidualStream<float>;
template class ResidualStream<bf16>;
template class ResidualStream<fp16>;

}  // namespace kzero::model
