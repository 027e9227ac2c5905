#include "model/residual_stream.hpp"

namespace kzero::model {

using memory::Category;

template <class T>
ResidualStream<T>::ResidualStream(memory::Arenas& arenas, const TransformerShape& shape,
                                  const deck::Recompute& recompute, Index rows,
                                  const TensorGroup<T>& group, Index places)
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
    const bool is_block = recompute.mode == deck::RecomputeMode::full;
    const Category kept = is_block ? Category::recompute : Category::activations;
    for (Index i = 0; i <= shape.layers; ++i)
      places_.push_back(take(i < shape.layers ? kept : Category::activations, rows));
    return;
  }
  std::vector<Matrix<T>> in_turn;
  turns_ = on_host ? places : 1;
  for (Index i = 0; i < turns_; ++i) in_turn.push_back(take(Category::activations, rows));
  for (Index i = 0; i <= shape.layers; ++i)
    places_.push_back(in_turn[static_cast<std::size_t>(i % turns_)]);
  if (on_host && !arenas.measuring()) copies_.emplace();
  for (Index i = 0; i < shape.layers; ++i) {
    if (on_host) {
      on_host_.emplace_back(take(Category::offloaded, own_rows_).data(), own_rows_, width);
    } else {
      kept_.push_back(take(Category::recompute, own_rows_));
    }
  }
}

template <class T>
ResidualStream<T>::ResidualStream(memory::Arenas& arenas, const TransformerShape& shape, Index rows,
                                  const TensorGroup<T>& group)
    : group_(group),
      own_rows_(rows),
      places_(static_cast<std::size_t>(shape.layers) + 1,
              Matrix<T>(arenas.take<T>(Category::activations, rows * shape.hidden), rows,
                        shape.hidden)) {}

/// Returns this rank's rows of the buffer from which block i reads.
template <class T>
Matrix<T> ResidualStream<T>::own_part(Index i) const {
  const Matrix<T>& all = at(i);
  return {all.data() + first_row_ * static_cast<Index>(all.extent(1)),
          static_cast<std::size_t>(own_rows_), all.extent(1)};
}

template <class T>
template <class To, class From>
void ResidualStream<T>::copy(const Execution& exec, Index i, const To& to, const From& from) {
  copies_->ready.order(exec, copies_->exec);
  Kokkos::deep_copy(copies_->exec, to, from);
  ended(i).record(copies_->exec);
}

template <class T>
void ResidualStream<T>::fetch(const Execution& exec, Index i) {
  copy(exec, i, own_part(i), on_host_[static_cast<std::size_t>(i)]);
  copies_->arriving = i;
}

template <class T>
void ResidualStream<T>::begin(const Execution& exec) const {
  if (copies_) copies_->ended[0].wait(exec);
}

template <class T>
void ResidualStream<T>::keep(const Execution& exec, Index i) {
  if (!kept_.empty()) Kokkos::deep_copy(exec, kept_[static_cast<std::size_t>(i)], own_part(i));
  if (!copies_) return;
  copies_->arriving = -1;
  copy(exec, i, on_host_[static_cast<std::size_t>(i)], own_part(i));
  // The block overwrites its predecessor's input, or its own if there is one buffer.
  ended(i + 1).wait(exec);
}

template <class T>
void ResidualStream<T>::restore(const Execution& exec, Index i) {
  if (copies_) {
    if (copies_->arriving != i) fetch(exec, i);
    ended(i).wait(exec);
    // The other buffer is free because block i + 1, which ran before, no longer needs it.
    if (turns_ > 1 && i > 0) fetch(exec, i - 1);
  }
  if (!is_cut_) return;
  const T* own = kept_.empty() ? own_part(i).data() : kept_[static_cast<std::size_t>(i)].data();
  group_.all_gather(exec, own, at(i), comm::Purpose::checkpointed_activations);
}

#define KZERO_INSTANTIATE(T) template class ResidualStream<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
