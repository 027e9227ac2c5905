#include "zero/reduction.hpp"

#include <algorithm>

#include "kernels/reduction.hpp"

namespace kzero::zero {

using comm::ConstSpan;
using comm::Span;

template <class T>
Reduction<T>::Reduction(const tensor::Execution& exec, comm::Communicator& comm,
                        const Bucket& bucket, const param::UnitLayout& layout, T* unit,
                        const OwnedSum<T>& sum, Result result)
    : exec_(&exec),
      comm_(&comm),
      bucket_(&bucket),
      layout_(&layout),
      unit_(unit),
      sum_(sum),
      result_(result) {
  slices_ = comm.size() == 1 ? 1 : ceil_div(layout.piece, bucket.slice());
  exec.fence("kzero::zero::gradients_ready");
  for (Index i = 0; i < std::min(slices_, bucket.slots()); ++i) begin(i);
}

template <class T>
comm::Slice Reduction<T>::slice(Index number) const {
  if (comm_->size() == 1) return {0, layout_->piece};
  const Index at = number * bucket_->slice();
  return {at, std::min(bucket_->slice(), layout_->piece - at)};
}

template <class T>
void Reduction<T>::begin(Index number) {
  const int ranks = comm_->size();
  if (ranks == 1) return;
  const auto [at, count] = slice(number);
  T* slot = bucket_->template slot<T>(number);
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  send.reserve(static_cast<std::size_t>(ranks));
  receive.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    send.push_back(ConstSpan::of(unit_ + r * layout_->piece + at, count));
    receive.push_back(Span::of(slot + r * count, count));
  }
  tickets_.push_back(comm_->begin_all_to_all(std::move(send), std::move(receive),
                                             comm::Operation::reduce_scatter,
                                             comm::Purpose::gradients));
}

template <class T>
void Reduction<T>::add_up(Index number) const {
  const int ranks = comm_->size(), me = comm_->rank();
  const auto [at, count] = slice(number);
  const T* own = unit_ + me * layout_->piece + at;
  const float* base = sum_.base ? sum_.base + at : nullptr;
  const auto extent = static_cast<std::size_t>(count);
  const T* others = ranks == 1 ? nullptr : bucket_->template slot<T>(number);
  const kernels::RankValues<T> values{others, count, own, ranks, me};
  if (sum_.wide) {
    kernels::ordered_sum<T, float>(*exec_, values, base, {sum_.wide + at, extent});
  } else if (ranks > 1 || base || sum_.rounded + at != own) {
    kernels::ordered_sum<T, T>(*exec_, values, base, {sum_.rounded + at, extent});
  }
}

template <class T>
comm::Ticket Reduction<T>::gather(Index number) const {
  const Index piece = layout_->piece;
  return comm::begin_gather<T>(*comm_, unit_, piece, slice(number), unit_ + comm_->rank() * piece,
                               comm::Purpose::gradients);
}

template <class T>
comm::Ticket Reduction<T>::finish() {
  comm::Ticket last = 0;
  for (Index i = 0; i < slices_; ++i) {
    if (comm_->size() > 1) comm_->wait(tickets_[static_cast<std::size_t>(i)]);
    add_up(i);
    exec_->fence("kzero::zero::slice_summed");
    if (i + bucket_->slots() < slices_) begin(i + bucket_->slots());
    if (result_ == Result::everywhere && comm_->size() > 1) last = gather(i);
  }
  return last;
}

template class Reduction<float>;
template class Reduction<bf16>;
template class Reduction<fp16>;

}  // namespace kzero::zero
