#include "zero/reduction.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "runtime/profile.hpp"

namespace kzero::zero {

using comm::ConstSpan;
using comm::Span;

template <class T>
Reduction<T>::Reduction(const tensor::Execution& exec, ReductionStream& stream,
                        comm::Communicator& comm, const Bucket& bucket,
                        const param::UnitLayout& layout, T* unit, const OwnedSum<T>& sum,
                        Result result, const Terms& terms)
    : exec_(&exec),
      stream_(&stream),
      comm_(&comm),
      bucket_(&bucket),
      layout_(&layout),
      unit_(unit),
      sum_(sum),
      result_(result),
      terms_(terms) {
  const runtime::ProfileRegion region([] { return "kzero::zero::begin_reduction"; });
  const bool whole = comm.size() == 1 || terms.order == Order::library;
  slices_ = whole ? 1 : ceil_div(layout.shard, bucket.slice());
  stream.written.order(exec, stream.stream);
  for (Index i = 0; i < std::min(slices_, bucket.slots()); ++i) begin(i);
  if (comm.waits_on_device()) sum_all();
}

template <class T>
comm::Slice Reduction<T>::slice(Index number) const {
  if (slices_ == 1) return {0, layout_->shard};
  const Index at = number * bucket_->slice();
  return {at, std::min(bucket_->slice(), layout_->shard - at)};
}

template <class T>
void Reduction<T>::begin(Index number) {
  const int ranks = comm_->size();
  if (ranks == 1) return;
  if (terms_.order == Order::library) return begin_library_sum();
  const auto [at, count] = slice(number);
  T* slot = bucket_->template slot<T>(number);
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  send.reserve(static_cast<std::size_t>(ranks));
  receive.reserve(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    const bool sends = comm_->rank() < terms_.ranks, receives = r < terms_.ranks;
    send.push_back(ConstSpan::of(unit_ + r * layout_->shard + at, sends ? count : 0));
    receive.push_back(Span::of(slot + r * count, receives ? count : 0));
  }
  requests_.push_back(comm_->begin_all_to_all(stream_->stream, std::move(send), std::move(receive),
                                              comm::Operation::reduce_scatter,
                                              comm::Purpose::gradients));
}

/// Libraries sum over all ranks, so a rank without a gradient adds zeros.
template <class T>
void Reduction<T>::begin_library_sum() {
  const auto all = static_cast<std::size_t>(layout_->padded);
  if (comm_->rank() >= terms_.ranks)
    kernels::fill<T>(stream_->stream, tensor::Vector<T>(unit_, all), 0);
  requests_.push_back(comm_->begin_library_sum(
      stream_->stream, ConstSpan::of(unit_, layout_->padded),
      Span::of(unit_ + comm_->rank() * layout_->shard, layout_->shard), comm::Purpose::gradients));
}

template <class T>
void Reduction<T>::add_up(Index number) const {
  // The library has already replaced the rank's own values by the sum.
  const bool alone = comm_->size() == 1 || terms_.order == Order::library;
  const auto [at, count] = slice(number);
  const T* own = unit_ + comm_->rank() * layout_->shard + at;
  const T* others = alone ? nullptr : bucket_->template slot<T>(number);
  const kernels::PerRank<T> values{others, count, own, alone ? 1 : terms_.ranks,
                                   alone ? 0 : comm_->rank()};
  const float* base = sum_.base ? sum_.base + at : nullptr;
  const auto extent = static_cast<std::size_t>(count);
  if (sum_.fp32) {
    kernels::ordered_sum<T, float>(stream_->stream, values, base, {sum_.fp32 + at, extent});
  } else if (!alone || base || sum_.cast + at != own) {
    kernels::ordered_sum<T, T>(stream_->stream, values, base, {sum_.cast + at, extent});
  }
}

template <class T>
comm::Request Reduction<T>::gather(Index number) const {
  const Index shard = layout_->shard;
  return comm::begin_gather<T>(stream_->stream, *comm_, unit_, shard, slice(number),
                               unit_ + comm_->rank() * shard, comm::Purpose::gradients);
}

template <class T>
void Reduction<T>::sum_all() {
  for (Index i = 0; i < slices_; ++i) {
    if (comm_->size() > 1) comm_->wait(stream_->stream, requests_[i]);
    add_up(i);
    if (i + bucket_->slots() < slices_) begin(i + bucket_->slots());
    if (result_ == Result::all_reduced && comm_->size() > 1) last_gather_ = gather(i);
  }
  stream_->summed.record(stream_->stream);
  summed_ = true;
}

template <class T>
comm::Request Reduction<T>::finish() {
  const runtime::ProfileRegion region([] { return "kzero::zero::finish_reduction"; });
  if (!summed_) sum_all();
  comm_->wait_for(*exec_, stream_->summed);
  return last_gather_;
}

#define KZERO_INSTANTIATE(T) template class Reduction<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::zero
