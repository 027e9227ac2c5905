#include "comm/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "base/waited.hpp"

namespace kzero::comm {

namespace {

constexpr int tag = 1;

// A waiting thread must not take a core from computing threads: it yields after every poll, and
// after some polls it sleeps.
constexpr int looks_before_sleep = 100;
constexpr std::chrono::microseconds sleep_time{20};

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

Span chunk_of(const Span& span, Index at) {
  const Index bytes = std::clamp<Index>(span.bytes() - at, 0, chunk_bytes);
  return {static_cast<std::byte*>(span.data) + at, bytes / bytes_of(span.dtype), span.dtype};
}

ConstSpan chunk_of(const ConstSpan& span, Index at) {
  const Index bytes = std::clamp<Index>(span.bytes() - at, 0, chunk_bytes);
  return {static_cast<const std::byte*>(span.data) + at, bytes / bytes_of(span.dtype), span.dtype};
}

}  // namespace

MpiCommunicator::MpiCommunicator(Overlap overlap, const grid::Group& group, Traffic& traffic,
                                 Reach reach, Waits waits)
    : Communicator(group, traffic),
      polls_((overlap != Overlap::no || waits == Waits::yield) && group.size() > 1) {
  if (group.size() == 1) return;
  if (reach == Reach::host) staging_.emplace(chunk_bytes);
  if (overlap == Overlap::yes) worker_.emplace("messages of group " + group.name());
}

MpiCommunicator::~MpiCommunicator() {
  // Requests are still in flight only if an error unwinds the stack; the partners may then never
  // answer.
  abandoned_ = true;
}

Request MpiCommunicator::begin(const Execution& stream, std::vector<ConstSpan> send,
                               std::vector<Span> receive, const Channel& channel) {
  stream.fence("kzero::comm::operands_ready");
  if (!worker_) {
    const CountedWait counted;
    exchange(send, receive, channel);
    return 0;
  }
  return worker_->submit([this, send = std::move(send), receive = std::move(receive), channel] {
    exchange(send, receive, channel);
  });
}

void MpiCommunicator::complete(const Execution&, Request request) {
  if (!worker_) return;
  const CountedWait counted(&worker_->core_delay());
  worker_->wait(request);
}

void MpiCommunicator::exchange(const std::vector<ConstSpan>& send, const std::vector<Span>& receive,
                               const Channel& channel) {
  const int ranks = size(), me = rank();
  const std::string what = describe(channel);
  for (int step = 1; step < ranks; ++step) {
    const int to = (me + step) % ranks, from = (me - step + ranks) % ranks;
    const Index bytes = std::max(send[to].bytes(), receive[from].bytes());
    if (bytes == 0) continue;
    const Waiting waiting({what, channel.group, group_.launch_rank(from)});
    const TimelineSpan span(
        SpanKind::message, [&] { return message_name(channel); },
        {.elements = send[to].elements, .bytes = send[to].bytes(), .rank = group_.launch_rank(to)});
    for (Index at = 0; at < bytes; at += chunk_bytes)
      swap_chunk(chunk_of(send[to], at), to, chunk_of(receive[from], at), from);
  }
}

void MpiCommunicator::swap_chunk(ConstSpan send, int to, Span receive, int from) {
  if (!staging_) return swap_reachable(send, to, receive, from);
  swap_reachable(staging_->bring(send), to, staging_->room(receive), from);
  staging_->take(receive);
}

void MpiCommunicator::swap_reachable(ConstSpan send, int to, Span receive, int from) {
  MPI_Request requests[2];
  const auto start = [&] {
    check(
        MPI_Irecv(receive.data, static_cast<int>(receive.bytes()), MPI_BYTE,
                  receive.elements > 0 ? from : MPI_PROC_NULL, tag, group_.handle(), &requests[0]),
        "receive", group_.name());
    check(MPI_Isend(send.data, static_cast<int>(send.bytes()), MPI_BYTE,
                    send.elements > 0 ? to : MPI_PROC_NULL, tag, group_.handle(), &requests[1]),
          "send", group_.name());
  };
  if (!polls_) {
    start();
    check(MPI_Waitall(2, requests, MPI_STATUSES_IGNORE), "message", group_.name());
    return;
  }
  in_turn(start);
  int done = 0;
  for (int looks = 1; !abandoned_; ++looks) {
    in_turn([&] {
      check(MPI_Testall(2, requests, &done, MPI_STATUSES_IGNORE), "message", group_.name());
    });
    if (done) return;
    if (looks < looks_before_sleep) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(sleep_time);
    }
  }
}

}  // namespace kzero::comm
