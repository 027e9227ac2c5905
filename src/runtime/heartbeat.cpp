#include "runtime/heartbeat.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
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

void remove_shared_addresses(std::vector<HeartbeatPeer>& peers) {
  using AddressBytes = decltype(Endpoint::address);
  std::map<AddressBytes, std::size_t> first_owner;
  std::set<AddressBytes> shared;
  for (std::size_t i = 0; i < peers.size(); ++i) {
    for (const Endpoint& endpoint : peers[i].endpoints) {
      if (first_owner.try_emplace(endpoint.address, i).first->second != i)
        shared.insert(endpoint.address);
    }
  }
  for (HeartbeatPeer& peer : peers)
    std::erase_if(peer.endpoints,
                  [&](const Endpoint& one) { return shared.contains(one.address); });
}

Heartbeat::Heartbeat(DatagramSocket socket, HeartbeatPlan plan, Alarm alarm)
    : socket_(std::move(socket)),
      plan_(std::move(plan)),
      alarm_(std::move(alarm)),
      inbox_(plan_.key, plan_.rank) {
  for (const HeartbeatPeer& peer : plan_.watched) watched_.push_back({peer});
  followers_.reserve(plan_.followers);
  thread_ = std::thread([this] { run(); });
}

Heartbeat::~Heartbeat() {
  stopping_ = true;
  send(Kind::wake, plan_.rank, std::array{socket_.loopback()});
  thread_.join();
  for (int i = 0; i < repetitions; ++i) send_to_all(Kind::ended);
}

/// Sends one message to all addresses of a rank.
void Heartbeat::send(Kind kind, std::uint32_t rank, std::span<const Endpoint> endpoints) {
  const SealedMessage message =
      seal({.kind = kind, .from = plan_.rank, .to = rank, .counter = ++sent_}, plan_.key);
  for (const Endpoint& endpoint : endpoints) socket_.send(endpoint, message);
}

/// Sends to the peers that this process watches or is watched by.
void Heartbeat::send_to_all(Kind kind) {
  for (const Watched& one : watched_) send(kind, one.peer.rank, one.peer.endpoints);
  for (const Follower& one : followers_) send(kind, one.rank, std::array{one.endpoint});
}

void Heartbeat::run() {
  const Seconds interval(plan_.silence / beats_a_silence);
  Clock::time_point looked = Clock::now(), next = looked;
  while (!stopping_) {
    if (!listen(std::clamp(Seconds(next - Clock::now()), Seconds(0), interval))) return;
    const auto now = Clock::now();
    if (now < next) continue;
    next = now + std::chrono::duration_cast<Clock::duration>(interval);
    send_to_all(Kind::alive);
    // A gap between two checks is time in which this process did not run: it was suspended.
    const Seconds elapsed = std::min<Seconds>(now - std::exchange(looked, now), 2 * interval);
    if (!look(elapsed.count())) return;
  }
}

/// Handles one datagram, if one arrives. Returns false if the thread should end.
bool Heartbeat::listen(std::chrono::duration<double> patience) {
  SealedMessage room{};
  const auto received = socket_.receive(room, patience);
  if (!received || received->bytes != room.size()) return true;
  const auto message = inbox_.accept(room);
  if (!message) return true;
  switch (message->kind) {
    case Kind::alive:
      note_alive(message->from, received->from);
      return true;
    case Kind::ended:
      note_ended(message->from);
      return true;
    case Kind::alarm:
      raise({Silence::Kind::told, {}, 0});
      return false;
    case Kind::wake:
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
    for (const Follower& one : followers_) send(Kind::alarm, one.rank, std::array{one.endpoint});
    if (silence.kind == Silence::Kind::told) continue;
    for (const HeartbeatPeer& peer : plan_.told) send(Kind::alarm, peer.rank, peer.endpoints);
  }
  alarm_(silence);
}

}  // namespace kzero::runtime
