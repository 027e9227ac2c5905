#include "zero/reduction.hpp"

#include <algorithm>

#include "kernels/initialize.hpp"
#include "runtime/profile.hpp"

namespace kzero::zero {

using comm::ConstSpan;
using comm::Span;
using kernels::OpenSums;
using kernels::RankValues;

namespace {

template <class T>
tensor::Vector<T> vector(T* data, Index count) {
  return {data, static_cast<std::size_t>(count)};
}

/// The same sums from element `at` on.
OpenSums from(const OpenSums& open, Index at) {
  if (open.oldest == nullptr) return open;
  return {open.oldest + at, open.others == nullptr ? nullptr : open.others + at, open.stride};
}

}  // namespace

template <class T>
Reduction<T>::Reduction(const tensor::Execution& exec, ReductionStream& stream,
                        comm::Communicator& comm, const Bucket& bucket,
                        const param::UnitLayout& layout, const UnitGradients<T>& terms,
                        const UnitSums<T>& sums, Result result, Order order, const SumPlan& plan,
                        Index round)
    : exec_(&exec),
      stream_(&stream),
      comm_(&comm),
      bucket_(&bucket),
      layout_(&layout),
      terms_(terms),
      sums_(sums),
      result_(result),
      order_(order),
      plan_(&plan),
      round_(round) {
  const runtime::ProfileRegion region([] { return "kzero::zero::begin_reduction"; });
  slices_ = is_alone() ? 1 : ceil_div(layout.shard, bucket.slice());
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
  if (comm_->size() == 1) return;
  if (order_ == Order::library) return begin_library_sum();
  if (plan_->route() == Route::terms) return begin_gradients(number);
  if (plan_->node_count(node(), round_) > 0) {
    collect_in_node(number);
    add_in_node(number);
  }
  if (plan_->sends(round_)) begin_node_sums(number);
}

template <class T>
comm::Request Reduction<T>::exchange(std::vector<ConstSpan> send, std::vector<Span> receive) const {
  return comm_->begin_all_to_all(stream_->stream, std::move(send), std::move(receive),
                                 comm::Operation::reduce_scatter, comm::Purpose::gradients);
}

/// Libraries sum over all ranks, so a rank without a gradient adds zeros.
template <class T>
void Reduction<T>::begin_library_sum() {
  const auto all = static_cast<std::size_t>(layout_->padded);
  if (!plan_->has(comm_->rank(), round_))
    kernels::fill<T>(stream_->stream, tensor::Vector<T>(terms_.first, all), 0);
  requests_.push_back(comm_->begin_library_sum(
      stream_->stream, ConstSpan::of(terms_.first, layout_->padded),
      Span::of(shard(comm_->rank()), layout_->shard), comm::Purpose::gradients));
}

/// Sends each owner its shard of this rank's gradients.
template <class T>
void Reduction<T>::begin_gradients(Index number) {
  const auto [at, count] = slice(number);
  T* slot = bucket_->template gradients<T>(number);
  const bool sends = plan_->has(comm_->rank(), round_);
  comm::Request last = 0;
  for (Index chunk = 0; chunk < plan_->own(); ++chunk) {
    std::vector<ConstSpan> send;
    std::vector<Span> receive;
    send.reserve(static_cast<std::size_t>(comm_->size()));
    receive.reserve(send.capacity());
    for (Index r = 0; r < comm_->size(); ++r) {
      T* const arrival = slot + (plan_->first_term(r) + chunk) * count;
      send.push_back(ConstSpan::of(shard(r, chunk) + at, sends ? count : 0));
      receive.push_back(Span::of(arrival, plan_->has(r, round_) ? count : 0));
    }
    last = exchange(std::move(send), std::move(receive));
  }
  if (plan_->own() > 1) keep_own_terms(number);
  requests_.push_back(last);
}

/// Copies this rank's terms to those that arrive, so that all have their places there.
template <class T>
void Reduction<T>::keep_own_terms(Index number) const {
  const auto [at, count] = slice(number);
  T* const places =
      bucket_->template gradients<T>(number) + plan_->first_term(comm_->rank()) * count;
  for (Index chunk = 0; chunk < plan_->own(); ++chunk) {
    Kokkos::deep_copy(
        stream_->stream, vector(places + chunk * count, count),
        tensor::Vector<const T>(shard(comm_->rank(), chunk) + at, static_cast<std::size_t>(count)));
  }
}

/// Sends the gradients of the shards of each place on a node to this node's rank of that place.
template <class T>
void Reduction<T>::collect_in_node(Index number) const {
  const NodeShape shape = plan_->on_nodes();
  if (shape.node_ranks == 1) return;
  const auto [at, count] = slice(number);
  T* slot = bucket_->template gradients<T>(number);
  const Index terms = plan_->node_count(node(), round_);
  comm::Request last = 0;
  for (Index owner = 0; owner < shape.nodes; ++owner) {
    std::vector<ConstSpan> send(static_cast<std::size_t>(comm_->size()));
    std::vector<Span> receive(send.size());
    T* const arrivals = slot + owner * shape.node_ranks * count;
    for (Index l = 0; l < shape.node_ranks; ++l) {
      const Index peer = shape.rank_at(l, node());
      if (place() < terms) send[peer] = ConstSpan::of(shard(shape.rank_at(l, owner)) + at, count);
      if (l < terms) receive[peer] = Span::of(arrivals + l * count, count);
    }
    last = exchange(std::move(send), std::move(receive));
  }
  comm_->wait(stream_->stream, last);
}

template <class T>
void Reduction<T>::add_in_node(Index number) const {
  const NodeShape shape = plan_->on_nodes();
  const auto [at, count] = slice(number);
  const auto terms = static_cast<int>(plan_->node_count(node(), round_));
  for (Index owner = 0; owner < shape.nodes; ++owner) {
    const T* others = shape.node_ranks == 1 ? nullptr
                                            : bucket_->template gradients<T>(number) +
                                                  owner * shape.node_ranks * count;
    const RankValues<T> values{others, count, shard(shape.rank_at(place(), owner)) + at, terms,
                               static_cast<int>(place())};
    kernels::add_terms<T, float>(stream_->stream, values, plan_->node_terms(round_),
                                 from(sums_.node, owner * layout_->shard + at),
                                 vector(bucket_->node_sums(number) + owner * count, count));
  }
}

/// Sends this node's sums to their owners.
template <class T>
void Reduction<T>::begin_node_sums(Index number) {
  const Index count = slice(number).count;
  const bool sends = node() < plan_->owner_count(round_);
  std::vector<ConstSpan> send(static_cast<std::size_t>(comm_->size()));
  std::vector<Span> receive(send.size());
  for (Index n = 0; n < plan_->nodes(); ++n) {
    const Index peer = plan_->on_nodes().rank_at(place(), n);
    const bool receives = n < plan_->owner_count(round_);
    if (sends) send[peer] = ConstSpan::of(bucket_->node_sums(number) + n * count, count);
    if (receives) receive[peer] = Span::of(bucket_->arriving(number) + n * count, count);
  }
  requests_.push_back(exchange(std::move(send), std::move(receive)));
}

template <class T>
void Reduction<T>::add_up(Index number) const {
  const auto [at, count] = slice(number);
  const tensor::Execution& stream = stream_->stream;
  T* own = shard(comm_->rank()) + at;
  const tensor::Vector<T> out = vector(sums_.out + at, count);
  const kernels::Terms terms = plan_->owner_terms(round_);
  const OpenSums open = from(sums_.owner, at);
  const bool is_complete = terms.first == 0 && terms.ends && out.data() == own;
  if (order_ == Order::library) {
    // The library has already replaced the rank's own values by the sum.
    if (!is_complete) kernels::add_terms<T, T>(stream, {.own = own}, terms, open, out);
    return;
  }
  const auto present = static_cast<int>(plan_->owner_count(round_));
  if (plan_->route() != Route::terms) {
    const RankValues<float> values{bucket_->arriving(number), count,
                                   bucket_->node_sums(number) + node() * count, present,
                                   static_cast<int>(node())};
    return kernels::add_terms<float, T>(stream, values, terms, open, out);
  }
  const bool is_single = comm_->size() == 1;
  if (is_single && is_complete) return;
  const T* others = is_single ? own : bucket_->template gradients<T>(number);
  const RankValues<T> values{others, is_single ? terms_.stride : count, own, present,
                             static_cast<int>(plan_->first_term(comm_->rank()))};
  kernels::add_terms<T, T>(stream, values, terms, open, out);
}

template <class T>
comm::Request Reduction<T>::gather(Index number) const {
  return comm::begin_gather<T>(stream_->stream, *comm_, terms_.whole, layout_->shard, slice(number),
                               terms_.whole + comm_->rank() * layout_->shard,
                               comm::Purpose::gradients);
}

template <class T>
void Reduction<T>::sum_all() {
  const bool sends = plan_->sends(round_);
  for (Index i = 0; i < slices_; ++i) {
    if (sends && comm_->size() > 1) comm_->wait(stream_->stream, requests_[i]);
    if (sends) add_up(i);
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
