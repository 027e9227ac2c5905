#include "runtime/heartbeat.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

// A silence is this many consecutive datagrams that did not arrive.
constexpr double beats_a_silence = 15;
// Peers that are silent for nearly as long as the first are assumed to be lost with it.
constexpr double nearly = 0.8;
constexpr int repetitions = 3;  // of one-time messages, because datagrams get lost

}  // namespace

Heartbeat::Heartbeat(DatagramSocket socket, HeartbeatPlan plan, Alarm alarm)
    : socket_(std::move(socket)), plan_(std::move(plan)), alarm_(std::move(alarm)) {
  for (const HeartbeatPeer& peer : plan_.watched) watched_.push_back({peer});
  followers_.reserve(plan_.followers);
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  stopping_ = true;
  send(Message::wake, socket_.loopback());
  thread_.join();
  for (int i = 0; i < repetitions; ++i) send_to_all(Message::ended);
}

void Heartbeat::send(Message message, const Endpoint& to) const {
  const Datagram datagram{plan_.run, message, plan_.rank};
  socket_.send(to, std::as_bytes(std::span(&datagram, 1)));
}

/// Sends to the peers that this process watches or is watched by.
void Heartbeat::send_to_all(Message message) const {
  for (const Watched& one : watched_)
    for (const Endpoint& endpoint : one.peer.endpoints) send(message, endpoint);
  for (const Follower& follower : followers_) send(message, follower.endpoint);
}

void Heartbeat::run() {
  const Seconds interval(plan_.silence / beats_a_silence);
  Clock::time_point looked = Clock::now(), next = looked;
  while (!stopping_) {
    if (!listen(std::clamp(Seconds(next - Clock::now()), Seconds(0), interval))) return;
    const auto now = Clock::now();
    if (now < next) continue;
    next = now + std::chrono::duration_cast<Clock::duration>(interval);
    send_to_all(Message::alive);
    // A gap between two checks is time in which this process did not run: it was suspended.
    const Seconds elapsed = std::min<Seconds>(now - std::exchange(looked, now), 2 * interval);
    if (!look(elapsed.count())) return;
  }
}

/// Handles one datagram, if one arrives. Returns false if the thread should end.
bool Heartbeat::listen(std::chrono::duration<double> patience) {
  Datagram datagram;
  const auto room = std::as_writable_bytes(std::span(&datagram, 1));
  const auto received = socket_.receive(room, patience);
  if (!received || received->bytes != sizeof datagram || datagram.run != plan_.run) return true;
  switch (datagram.message) {
    case Message::alive:
      note_alive(datagram.rank, received->from);
      return true;
    case Message::ended:
      note_ended(datagram.rank);
      return true;
    case Message::alarm:
      raise({Silence::Kind::told, {}, 0});
      return false;
    case Message::wake:
      return true;
  }
  return true;
}

void Heartbeat::note_alive(std::uint32_t rank, const Endpoint& from) {
  const auto same = [rank](const Watched& one) { return one.peer.rank == rank; };
  if (const auto found = std::ranges::find_if(watched_, same); found != watched_.end()) {
    found->silent = 0;
    found->heard = true;
  } else if (followers_.size() < plan_.followers &&
             std::ranges::find(followers_, rank, &Follower::rank) == followers_.end()) {
    followers_.push_back({rank, from});
  }
}

void Heartbeat::note_ended(std::uint32_t rank) {
  for (Watched& one : watched_) one.ended = one.ended || one.peer.rank == rank;
  std::erase_if(followers_, [rank](const Follower& one) { return one.rank == rank; });
}

/// Counts the time that passed; returns false after an alarm.
bool Heartbeat::look(double elapsed) {
  running_ += elapsed;
  bool is_silent = false;
  for (Watched& one : watched_) {
    one.silent += elapsed;
    is_silent = is_silent || (one.heard && !one.ended && one.silent >= plan_.silence);
  }
  if (running_ >= plan_.silence && !std::exchange(mentioned_, true)) mention_unheard();
  if (!is_silent) return true;
  Silence silence{Silence::Kind::peer, {}, 0};
  std::size_t expected = 0;
  for (const Watched& one : watched_) {
    if (!one.heard || one.ended) continue;
    ++expected;
    if (one.silent < nearly * plan_.silence) continue;
    silence.names.push_back(one.peer.name);
    silence.seconds = std::max(silence.seconds, one.silent);
  }
  if (expected > 1 && silence.names.size() == expected) silence.kind = Silence::Kind::all;
  raise(silence);
  return false;
}

void Heartbeat::mention_unheard() {
  Silence silence{Silence::Kind::never_heard, {}, running_};
  for (const Watched& one : watched_) {
    if (!one.heard && !one.ended) silence.names.push_back(one.peer.name);
  }
  if (!silence.names.empty()) alarm_(silence);
}

/// Tells the others before raising the alarm, which does not return in a run.
void Heartbeat::raise(const Silence& silence) {
  for (int i = 0; i < repetitions; ++i) {
    for (const Follower& follower : followers_) send(Message::alarm, follower.endpoint);
    if (silence.kind == Silence::Kind::told) continue;
    for (const HeartbeatPeer& peer : plan_.told)
      for (const Endpoint& endpoint : peer.endpoints) send(Message::alarm, endpoint);
  }
  alarm_(silence);
}

}  // namespace kzero::runtime
