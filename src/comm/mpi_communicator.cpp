#include "comm/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <mutex>

#include "base/error.hpp"
#include "base/pause.hpp"
#include "base/wait.hpp"
#include "base/waited.hpp"
#include "comm/flow.hpp"

namespace kzero::comm {

namespace {

constexpr int tag = 1;

void check(int status, const char* what, const std::string& group) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail(ExitCode::other, "{} over group '{}' failed: {}", what, group, std::string(text, length));
}

/// Serializes the MPI calls of this process's threads (MPI_THREAD_SERIALIZED).
std::mutex turn;

template <class F>
void in_turn(const F& calls) {
  const std::lock_guard lock(turn);
  calls();
}

/// Tells the watchdog and the time line of an exchange. A span for each rank that is sent to lasts
/// while its message is the oldest to send. The last lasts to the end of the exchange.
class ExchangeReport {
 public:
  ExchangeReport(const grid::Group& group, std::span<const ConstSpan> send, const Channel& channel)
      : group_(group), send_(send), channel_(channel), what_(describe(channel)) {}

  void waits_for(int rank) {
    if (rank == awaited_) return;
    awaited_ = rank;
    waiting_.reset();
    waiting_.emplace(Wait{what_, channel_.group, group_.launch_rank(rank)});
  }

  /// To be called for every rank that is sent to, in their order. -1: nothing is in flight to send.
  void sends_to(int rank) {
    if (span_ && (rank == to_ || rank < 0)) return;
    to_ = rank;
    span_.reset();
    span_.emplace(
        SpanKind::message, [&] { return message_name(channel_); }, work_of(rank));
  }

 private:
  SpanWork work_of(int to) const {
    if (to < 0) return {};
    return {
        .elements = send_[to].elements, .bytes = send_[to].bytes(), .rank = group_.launch_rank(to)};
  }

  const grid::Group& group_;
  std::span<const ConstSpan> send_;
  const Channel& channel_;
  const std::string what_;
  int awaited_ = -1, to_ = -1;
  std::optional<Waiting> waiting_;
  std::optional<TimelineSpan> span_;
};

/// The number of chunks in flight in each direction. Within a node, a second one would leave the
/// shared cache.
Index window_of(const grid::Group& group) {
  for (int rank = 0; rank < group.size(); ++rank) {
    if (group.leaves_node(rank)) return max_in_flight;
  }
  return 1;
}

/// A group of the ranks of this rank's node; none if it is alone there or no other node exists.
/// Collective over `group`.
std::optional<grid::Group> node_of(const grid::Group& group) {
  const NodeShape& shape = group.shape();
  if (shape.nodes <= 1 || shape.node_ranks == 1) return std::nullopt;
  return group.part(shape.node_of(group.rank()), "node");
}

}  // namespace

MpiCommunicator::MpiCommunicator(Overlap overlap, const grid::Group& group, Traffic& traffic,
                                 Reach reach, Waits waits)
    : Communicator(group, traffic),
      polls_((overlap != Overlap::no || waits == Waits::yield) && group.size() > 1),
      window_(reach == Reach::host ? 1 : window_of(group)),
      before_(node_of(group)),
      after_(node_of(group)) {
  if (group.size() == 1) return;
  if (reach == Reach::host) staging_.emplace(std::max(chunk_within_node, chunk_between_nodes));
  if (overlap == Overlap::yes) worker_.emplace("messages of group " + group.name());
}

MpiCommunicator::~MpiCommunicator() {
  // Requests are still in flight only if an error unwinds the stack; the partners may then never
  // answer.
  abandoned_ = true;
}

Request MpiCommunicator::begin(const Execution& stream, std::vector<ConstSpan> send,
                               std::vector<Span> receive, const Channel& channel) {
  return start(stream, [this, send = std::move(send), receive = std::move(receive), channel] {
    exchange(send, receive, channel);
  });
}

/// A rank of the node that comes to the first meeting has finished with what was in the place. That
/// meeting may end while the worker still exchanges for an earlier gather. The second completes the
/// node's parts. Polls for the meetings also advance messages, which other nodes may need to come.
Request MpiCommunicator::begin_for_node(const Execution& stream, const ConstSpan& mine,
                                        const Span& place, const std::vector<ConstSpan>& send,
                                        const std::vector<Span>& receive, const Channel& channel) {
  KZERO_EXPECT(before_ && after_ && !staging_);
  stream.fence("kzero::comm::place_read");
  return start(stream, [=, this, all_begun = begin_meeting(*before_)] {
    end_meeting(all_begun, channel);
    if (abandoned_) return;
    std::memcpy(place.data, mine.data, static_cast<std::size_t>(mine.bytes()));
    exchange(send, receive, channel);
    end_meeting(begin_meeting(*after_), channel);
  });
}

/// Runs a collective's task once the work on `stream` has ended: here, or on the worker.
template <class Task>
Request MpiCommunicator::start(const Execution& stream, Task task) {
  stream.fence("kzero::comm::operands_ready");
  if (worker_) return worker_->submit(std::move(task));
  const CountedWait counted;
  task();
  return 0;
}

void MpiCommunicator::complete(const Execution&, Request request) {
  if (!worker_) return;
  const CountedWait counted(&worker_->core_delay());
  worker_->wait(request);
}

void MpiCommunicator::exchange(const std::vector<ConstSpan>& send, const std::vector<Span>& receive,
                               const Channel& channel) {
  std::array<MPI_Request, 2 * max_in_flight> requests;
  requests.fill(MPI_REQUEST_NULL);
  const auto used = std::span(requests).first(2 * window_);
  Flow<Span> in(receive, Direction::in, group_, used.first(window_));
  Flow<ConstSpan> out(send, Direction::out, group_, used.last(window_));
  ExchangeReport report(group_, send, channel);
  while (!abandoned_) {
    in.fill(
        [&](const auto& chunk, MPI_Request& request) { post(chunk.data, chunk.rank, request); });
    out.fill(
        [&](const auto& chunk, MPI_Request& request) { post(chunk.data, chunk.rank, request); });
    if (in.oldest() < 0 && out.oldest() < 0) return;
    report.waits_for(in.oldest() < 0 ? out.oldest() : in.oldest());
    report.sends_to(out.oldest());
    wait_for_some(used);
    out.retire([&](const auto& chunk) { report.sends_to(chunk.rank); });
    in.retire([&](const auto& chunk) {
      if (staging_) staging_->take(chunk.data);
    });
  }
}

void MpiCommunicator::post(Span chunk, int from, MPI_Request& request) {
  if (staging_) chunk = staging_->room(chunk);
  in_turn([&] {
    check(MPI_Irecv(chunk.data, static_cast<int>(chunk.bytes()), MPI_BYTE, from, tag,
                    group_.handle(), &request),
          "receive", group_.name());
  });
}

void MpiCommunicator::post(ConstSpan chunk, int to, MPI_Request& request) {
  if (staging_) chunk = staging_->bring(chunk);
  in_turn([&] {
    check(MPI_Isend(chunk.data, static_cast<int>(chunk.bytes()), MPI_BYTE, to, tag, group_.handle(),
                    &request),
          "send", group_.name());
  });
}

/// Begins a wait for all ranks of the node. Those that end theirs see what this one wrote before.
MPI_Request MpiCommunicator::begin_meeting(const grid::Group& node) const {
  MPI_Request meeting = MPI_REQUEST_NULL;
  // MPI orders its own messages. The fences order the processor's other accesses around them.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  in_turn([&] { check(MPI_Ibarrier(node.handle(), &meeting), "barrier", node.name()); });
  return meeting;
}

void MpiCommunicator::end_meeting(MPI_Request meeting, const Channel& channel) const {
  const Waiting waiting({describe(channel), after_->name()});
  const TimelineSpan span(SpanKind::wait, [] { return SpanName("kzero::comm::meet_in_node"); });
  wait_for_some(std::span(&meeting, 1));
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

/// Returns when at least one message has ended; its request is then MPI_REQUEST_NULL.
void MpiCommunicator::wait_for_some(std::span<MPI_Request> requests) const {
  std::array<int, 2 * max_in_flight> which;
  const auto count = static_cast<int>(requests.size());
  int ended = 0;
  if (!polls_) {
    check(MPI_Waitsome(count, requests.data(), &ended, which.data(), MPI_STATUSES_IGNORE),
          "message", group_.name());
    return;
  }
  for (Pause pause; !abandoned_; pause()) {
    in_turn([&] {
      check(MPI_Testsome(count, requests.data(), &ended, which.data(), MPI_STATUSES_IGNORE),
            "message", group_.name());
    });
    if (ended > 0) return;
  }
}

}  // namespace kzero::comm
