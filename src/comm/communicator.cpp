#include "comm/communicator.hpp"

#include "base/error.hpp"
#include "comm/backends.hpp"
#include "comm/byte_view.hpp"
#include "runtime/profile.hpp"

namespace kzero::comm {

namespace {

void fill_own(const Execution& stream, const ConstSpan& mine, const Span& place) {
  if (place.data == mine.data || mine.elements == 0) return;
  Kokkos::deep_copy(stream, bytes_of(place), bytes_of(mine));
}

SpanName region_name(const Channel& channel) {
  return SpanName("{}{} of {}", "kzero::comm::", name_of(channel.operation),
                  name_of(channel.purpose));
}

/// The messages to each of `ranks` ranks, and those that arrive from it.
struct Messages {
  std::vector<ConstSpan> send;
  std::vector<Span> arriving;
};

/// Messages with some ranks: `mine` to each, and receive[i] from rank peer_at(i).
template <class PeerAt>
Messages messages_with(Index ranks, const ConstSpan& mine, const std::vector<Span>& receive,
                       const PeerAt& peer_at) {
  const auto count = static_cast<std::size_t>(ranks);
  Messages messages{std::vector<ConstSpan>(count), std::vector<Span>(count)};
  for (Index i = 0; i < std::ssize(receive); ++i) {
    const Index peer = peer_at(i);
    messages.send[peer] = mine;
    messages.arriving[peer] = receive[i];
  }
  return messages;
}

}  // namespace

Request Communicator::begin_all_to_all(const Execution& stream, std::vector<ConstSpan> send,
                                       std::vector<Span> receive, Operation operation,
                                       Purpose purpose) {
  KZERO_EXPECT(static_cast<int>(send.size()) == size() &&
               static_cast<int>(receive.size()) == size());
  if (size() == 1) return 0;
  const Channel channel{group_.name(), operation, purpose};
  for (int r = 0; r < size(); ++r) {
    if (r != rank())
      traffic_.add(channel, send[r].elements, send[r].bytes(), group_.leaves_node(r));
  }
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return begin(stream, std::move(send), std::move(receive), channel);
}

void Communicator::wait(const Execution& stream, Request request) {
  const runtime::ProfileRegion region([] { return "kzero::comm::wait"; }, SpanKind::wait);
  complete(stream, request);
}

Request Communicator::begin_all_gather(const Execution& stream, ConstSpan mine,
                                       std::vector<Span> receive, Purpose purpose,
                                       Operation operation) {
  KZERO_EXPECT(static_cast<int>(receive.size()) == size());
  const Channel channel{group_.name(), operation, purpose};
  if (size() == 1) {
    fill_own(stream, mine, receive[0]);
    return 0;
  }
  count_gather(channel, mine);
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return gather(stream, mine, std::move(receive), channel);
}

/// Counts this rank's part of a gather in two levels, or of one in which every rank sends `mine` to
/// every other.
void Communicator::count_gather(const Channel& channel, const ConstSpan& mine) {
  const auto [nodes, node_ranks] = group_.shape();
  const auto add = [&](Index messages, bool leaves_node) {
    traffic_.add(channel, messages * mine.elements, messages * mine.bytes(), leaves_node);
  };
  if (nodes > 1) {
    add(nodes - 1, true);
    add((node_ranks - 1) * nodes, false);
    return;
  }
  for (int r = 0; r < size(); ++r) {
    if (r != rank()) add(1, group_.leaves_node(r));
  }
}

Request Communicator::gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                             const Channel& channel) {
  fill_own(stream, mine, receive[rank()]);
  const auto [nodes, node_ranks] = group_.shape();
  if (nodes <= 1 || node_ranks == 1) {
    return begin(stream, std::vector<ConstSpan>(static_cast<std::size_t>(size()), mine),
                 std::move(receive), channel);
  }
  return gather_by_node(stream, mine, receive, channel);
}

/// Gathers between the ranks with the same place on their nodes, then within each node. A value
/// therefore enters a node once.
Request Communicator::gather_by_node(const Execution& stream, ConstSpan mine,
                                     const std::vector<Span>& receive, const Channel& channel) {
  const NodeShape& shape = group_.shape();
  const Index place = shape.place_of(rank()), node = shape.node_of(rank());
  const auto in_node = [&](Index p) { return shape.rank_at(p, node); };
  const auto across_nodes = [&](Index n) { return shape.rank_at(place, n); };
  std::vector<Span> arriving;
  for (Index n = 0; n < shape.nodes; ++n) arriving.push_back(receive[across_nodes(n)]);
  Request last = gather_from(stream, mine, arriving, channel, across_nodes);
  for (Index n = 0; n < shape.nodes; ++n) {
    const Span& held = receive[across_nodes(n)];
    arriving.clear();
    for (Index p = 0; p < shape.node_ranks; ++p) arriving.push_back(receive[shape.rank_at(p, n)]);
    last = gather_from(stream, {held.data, held.elements, held.dtype}, arriving, channel, in_node);
  }
  return last;
}

Request Communicator::begin_gather_in_node(const Execution& stream, ConstSpan mine,
                                           const std::vector<Span>& receive, Purpose purpose) {
  const NodeShape& shape = group_.shape();
  KZERO_EXPECT(shape.is_regular() && std::ssize(receive) == shape.node_ranks);
  return gather_part(
      stream, mine, receive, purpose, false,
      [&, node = shape.node_of(rank())](Index place) { return shape.rank_at(place, node); });
}

Request Communicator::begin_gather_across_nodes(const Execution& stream, ConstSpan mine,
                                                const std::vector<Span>& receive, Purpose purpose) {
  const NodeShape& shape = group_.shape();
  KZERO_EXPECT(shape.is_regular() && std::ssize(receive) == shape.nodes);
  return gather_part(
      stream, mine, receive, purpose, true,
      [&, place = shape.place_of(rank())](Index node) { return shape.rank_at(place, node); });
}

/// Counts and begins a gather among some ranks, this one included, as gather_from() does.
template <class PeerAt>
Request Communicator::gather_part(const Execution& stream, const ConstSpan& mine,
                                  const std::vector<Span>& receive, Purpose purpose,
                                  bool leaves_node, const PeerAt& peer_at) {
  for (Index i = 0; i < std::ssize(receive); ++i) {
    if (peer_at(i) == rank()) fill_own(stream, mine, receive[i]);
  }
  const Index messages = std::ssize(receive) - 1;
  if (messages == 0) return 0;
  const Channel channel{group_.name(), Operation::all_gather, purpose};
  traffic_.add(channel, messages * mine.elements, messages * mine.bytes(), leaves_node);
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return gather_from(stream, mine, receive, channel, peer_at);
}

/// Begins to send `mine` to some ranks. Receives receive[i] from rank peer_at(i).
template <class PeerAt>
Request Communicator::gather_from(const Execution& stream, const ConstSpan& mine,
                                  const std::vector<Span>& receive, const Channel& channel,
                                  const PeerAt& peer_at) {
  auto [send, arriving] = messages_with(size(), mine, receive, peer_at);
  return begin(stream, std::move(send), std::move(arriving), channel);
}

Request Communicator::begin_gather_for_node(const Execution& stream, ConstSpan mine,
                                            const std::vector<Span>& receive, Purpose purpose) {
  const NodeShape& shape = group_.shape();
  KZERO_EXPECT(shape.nodes > 1 && std::ssize(receive) == shape.nodes);
  const Channel channel{group_.name(), Operation::all_gather, purpose};
  const Index messages = shape.nodes - 1, node = shape.node_of(rank());
  traffic_.add(channel, messages * mine.elements, messages * mine.bytes(), true);
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  const auto [send, arriving] = messages_with(
      size(), mine, receive,
      [&, place = shape.place_of(rank())](Index other) { return shape.rank_at(place, other); });
  return begin_for_node(stream, mine, receive[node], send, arriving, channel);
}

Request Communicator::begin_for_node(const Execution&, const ConstSpan&, const Span&,
                                     const std::vector<ConstSpan>&, const std::vector<Span>&,
                                     const Channel&) {
  fail(ExitCode::other, "internal error: this communicator shares no memory between ranks");
}

Request Communicator::begin_library_sum(const Execution& stream, ConstSpan all, Span own,
                                        Purpose purpose) {
  KZERO_EXPECT(all.elements == own.elements * size());
  const Channel channel{group_.name(), Operation::reduce_scatter, purpose};
  if (size() == 1) {
    fill_own(stream, all, own);
    return 0;
  }
  count_gather(channel, {own.data, own.elements, own.dtype});
  const runtime::ProfileRegion region([&] { return region_name(channel); });
  return library_sum(stream, all, own, channel);
}

Request Communicator::library_sum(const Execution&, ConstSpan, Span, const Channel&) {
  refuse_library_sums();
}

void refuse_library_sums() {
  fail(ExitCode::usage,
       "zero.reduction = \"library\" needs run.communicator = \"nccl\": sums over MPI are ordered "
       "ones");
}

}  // namespace kzero::comm
