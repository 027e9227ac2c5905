#include "model/block.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/attention.hpp"
#include "model/experts.hpp"
#include "model/feed_forward.hpp"

namespace kzero::model {

template <class T>
Block<T>::Block(Declaration& block, const deck::Model& model, Index tile_rows)
    : shape_(block.shape) {
  halves_.push_back(std::make_unique<Attention<T>>(block, model));
  if (shape_.has_experts()) {
    halves_.push_back(std::make_unique<Experts<T>>(block));
  } else {
    halves_.push_back(std::make_unique<FeedForward<T>>(block, tile_rows));
  }
}

template <class T>
ScratchNeeds Block<T>::scratch(const BatchShape& batch) const {
  ScratchNeeds needs;
  for (const auto& half : halves_) needs.include(half->scratch(batch));
  return needs;
}

template <class T>
void Block<T>::keep(Activations& memory, const BatchShape& batch, deck::RecomputeMode mode) {
  const Index n = shape_.stream_rows(batch.batch * shape_.own_sequence());
  between_.clear();
  for (const auto& half : halves_) {
    const Kept kept = half->kept(mode);
    half->keep(memory, batch, kept);
    if (half != halves_.back())
      between_.push_back(memory.take<T>(kept != Kept::input, "between", n, shape_.hidden));
  }
}

template <class T>
void Block<T>::forward(const BlockPass<T>& pass, Matrix<const T> x, Matrix<T> out) {
  for (std::size_t i = 0; i < halves_.size(); ++i)
    halves_[i]->forward(pass, input(i, x), i < between_.size() ? between_[i] : out);
}

// Recomputation runs forward's own kernels because other kernels might round differently.
template <class T>
void Block<T>::recompute(const BlockPass<T>& pass, Matrix<const T> x) {
  for (std::size_t i = 0; i < halves_.size(); ++i)
    halves_[i]->recompute(pass, input(i, x), i < between_.size() ? between_[i] : Matrix<T>());
}

/// Returns whether the gradients of the biases that the halves add are the sums of dx's rows before
/// and after the backward of the last half's norm. With dropout, they are sums of other rows.
template <class T>
bool Block<T>::norms_sum_biases(const BlockDropout& dropout) const {
  return shape_.sums_stream_biases() && !dropout.feed_forward.is_on() && !dropout.attention.is_on();
}

template <class T>
bool Block<T>::trains_before(std::size_t i, bool before_block) const {
  const auto first = halves_.begin();
  return before_block || std::any_of(first, first + static_cast<std::ptrdiff_t>(i),
                                     [](const auto& part) { return part->trains(); });
}

template <class T>
void Block<T>::backward(const BlockPass<T>& pass, Matrix<const T> x,
                        std::span<const BlockUnits<T>> gradients, tensor::Accumulate accumulate,
                        Matrix<T> dx, bool needs_input) {
  HalfGradients<T> g{gradients, accumulate, dx};
  g.norms_sum_biases = norms_sum_biases(pass.dropout);
  for (std::size_t i = halves_.size(); i-- > 0;) {
    g.needs_input = trains_before(i, needs_input);
    g.before = i > 0 ? &halves_[i - 1]->output() : nullptr;
    if (!halves_[i]->backward(pass, input(i, x), g)) return;
    g.scratch = halves_[i]->free_after_backward();
  }
}

template <class T>
void Block<T>::cache(memory::Arenas& arenas, Activations& shared, const kernels::CacheShape& shape,
                     Index rows) {
  for (const auto& half : halves_) half->cache(arenas, shared, shape, rows);
}

template <class T>
void Block<T>::clear_cache(const Execution& exec) {
  for (const auto& half : halves_) half->clear_cache(exec);
}

template <class T>
void Block<T>::step(const CachedRows<T>& rows, const T* unit, Matrix<T>& x, Matrix<T>& other) {
  for (const auto& half : halves_) {
    half->step(rows, unit, x, other);
    std::swap(x, other);
  }
}

template <class T>
Work Block<T>::forward_work(const PassShape& pass) const {
  Work sum(shape_, pass);
  for (const auto& half : halves_) sum += half->forward_work(pass);
  return sum;
}

template <class T>
Work Block<T>::recompute_work(const PassShape& pass, deck::RecomputeMode mode) const {
  Work sum(shape_, pass);
  for (const auto& half : halves_)
    sum += half->recompute_work(pass, half->kept(mode), half == halves_.back());
  return sum;
}

template <class T>
Work Block<T>::backward_work(const PassShape& pass, bool needs_input) const {
  Work sum(shape_, pass);
  for (std::size_t i = halves_.size(); i-- > 0;) {
    const bool goes_on = trains_before(i, needs_input);
    sum += halves_[i]->backward_work(pass, goes_on);
    if (!goes_on) break;
  }
  return sum;
}

template <class T>
double Block<T>::recomputed_in_backward(deck::RecomputeMode mode) const {
  double sum = 0;
  for (const auto& half : halves_) sum += half->recomputed_in_backward(half->kept(mode));
  return sum;
}

#define KZERO_INSTANTIATE(T) template class Block<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::model
