#include "comm/launch_watch.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iostream>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "base/abandoned_run.hpp"
#include "base/error.hpp"
#include "base/wait.hpp"
#include "comm/failure.hpp"
#include "grid/nodes.hpp"
#include "runtime/heartbeat.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

namespace {

// Ranks that wait for the same one began within a step of one another.
constexpr std::chrono::seconds time_for_others{3};

std::string describe(const Wait& wait, std::chrono::duration<double> waited,
                     const grid::Nodes& nodes) {
  const std::string partner = wait.rank >= 0
                                  ? fmt::format("rank {} on {}", wait.rank, nodes.host(wait.rank))
                                  : std::string("the ranks");
  const std::string when =
      step_now() >= 0 ? fmt::format("step {}", step_now()) : std::string("no step");
  if (!wait.problem.empty())
    return fmt::format("{} over group '{}' in {}: {}", wait.what, wait.group, when, wait.problem);
  return fmt::format(
      "{} over group '{}' in {}: has waited {:.0f} s for {} (run.watchdog). Ranks that do not "
      "report a "
      "wait are those that hang or are gone",
      wait.what, wait.group, when, waited.count(), partner);
}

std::string describe(const runtime::Silence& silence) {
  using Kind = runtime::Silence::Kind;
  const std::string names = fmt::format("{}", fmt::join(silence.names, ", "));
  switch (silence.kind) {
    case Kind::peer:
      return fmt::format(
          "{} has not been heard for {:.0f} s (run.heartbeat). It is down, hangs or is cut off. "
          "The run ends; the same command resumes from the newest checkpoint",
          names, silence.seconds);
    case Kind::all:
      return fmt::format(
          "no other node has been heard for {:.0f} s: {} (run.heartbeat). This node is cut off, or "
          "they are down. The run ends; the same command resumes from the newest checkpoint",
          silence.seconds, names);
    case Kind::told:
      return "another rank has lost a node";
    case Kind::never_heard:
      return fmt::format(
          "warning: no sign of life has arrived from {} since the start, so its loss would not be "
          "noticed (run.heartbeat). The network may drop datagrams (UDP) between nodes",
          names);
  }
  return {};
}

/// Reports on standard error the collective and the step that do not complete, and the rank that
/// this rank waits for, with that rank's node. Gives others the time to report the same, and ends
/// the launch. `rank` is this rank's number. Does not return.
void give_up(const Wait& wait, std::chrono::duration<double> waited, int rank,
             const grid::Nodes& nodes) {
  abandon_run();
  print_failure(describe(wait, waited, nodes), rank);
  std::this_thread::sleep_for(time_for_others);
  leave_launch(ExitCode::other);
}

/// Reports on standard error which nodes are silent, and ends the launch; does not return then. A
/// node that was never heard is only reported.
void heed(const runtime::Silence& silence, int rank) {
  using Kind = runtime::Silence::Kind;
  const bool is_alarm = silence.kind != Kind::never_heard;
  if (is_alarm) abandon_run();
  // Of all ranks only those that watch the silent node speak.
  if (silence.kind != Kind::told) print_failure(describe(silence), rank);
  // They need time to be heard: a launcher drops all output once one rank has ended the launch.
  if (silence.kind == Kind::told) std::this_thread::sleep_for(time_for_others);
  if (is_alarm) leave_launch(ExitCode::other);
}

using runtime::DatagramSocket;
using runtime::Endpoint;
using runtime::HeartbeatPeer;

std::optional<DatagramSocket> open_socket() {
  try {
    return DatagramSocket();
  } catch (const Error&) {  // the others never hear this rank, and say so
    return std::nullopt;
  }
}

std::string pack(const std::vector<Endpoint>& endpoints) {
  std::string text;
  for (const Endpoint& one : endpoints) {
    text.append(reinterpret_cast<const char*>(one.address.data()), one.address.size());
    text += static_cast<char>(one.port >> 8U);
    text += static_cast<char>(one.port & 0xffU);
  }
  return text;
}

std::vector<Endpoint> unpack(const std::string& text) {
  std::vector<Endpoint> endpoints;
  constexpr std::size_t bytes = std::tuple_size_v<decltype(Endpoint::address)> + 2;
  for (std::size_t at = 0; at + bytes <= text.size(); at += bytes) {
    Endpoint& one = endpoints.emplace_back();
    std::memcpy(one.address.data(), text.data() + at, one.address.size());
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    one.port = static_cast<std::uint16_t>(byte(bytes - 2) << 8U | byte(bytes - 1));
  }
  return endpoints;
}

/// The first rank of every node, with the addresses under which it listens. Collective over
/// `world`.
std::vector<HeartbeatPeer> first_ranks(const grid::Group& world, const grid::Nodes& nodes,
                                       const std::vector<Endpoint>& mine) {
  const bool is_first = nodes.first_rank(nodes.of(world.rank())) == world.rank();
  const std::vector<std::string> all = world.gather(is_first ? pack(mine) : "");
  std::vector<HeartbeatPeer> peers;
  for (int node = 0; node < nodes.count(); ++node) {
    const int rank = nodes.first_rank(node);
    const std::string text = world.broadcast(world.is_root() ? all[rank] : "");
    peers.push_back(
        {static_cast<std::uint32_t>(rank), "node " + nodes.describe(node), unpack(text)});
  }
  return peers;
}

/// A random key that only the ranks know. Collective over `world`.
SipKey key_of_launch(const grid::Group& world) {
  std::random_device random;
  SipKey key{};
  for (std::uint64_t& word : key) {
    const std::uint64_t mine = static_cast<std::uint64_t>(random()) << 32U | random();
    word = std::stoull(world.broadcast(std::to_string(mine)));
  }
  return key;
}

/// The nodes before and after a node in the ring of nodes, once each.
std::vector<int> neighbours(int node, int nodes) {
  std::vector<int> found{(node + 1) % nodes};
  if (nodes > 2) found.push_back((node + nodes - 1) % nodes);
  return found;
}

/// Collective over `world`.
std::unique_ptr<runtime::Heartbeat> start(const grid::Group& world, const grid::Nodes& nodes,
                                          double silence) {
  if (nodes.count() == 1 || silence <= 0) return nullptr;
  std::optional<DatagramSocket> socket = open_socket();
  const int rank = world.rank(), node = nodes.of(rank);
  std::vector<HeartbeatPeer> firsts =
      first_ranks(world, nodes, socket ? socket->endpoints() : std::vector<Endpoint>{});
  runtime::HeartbeatPlan plan{
      .key = key_of_launch(world), .rank = static_cast<std::uint32_t>(rank), .silence = silence};
  if (!socket) return nullptr;
  HeartbeatPeer own_first = firsts[node];  // on this node all of its addresses lead to it
  firsts[node].endpoints = socket->endpoints();
  runtime::remove_shared_addresses(firsts);
  if (nodes.first_rank(node) == rank) {
    for (const int one : neighbours(node, nodes.count())) plan.watched.push_back(firsts[one]);
    firsts.erase(firsts.begin() + node);
    plan.told = std::move(firsts);
    plan.followers = nodes.ranks(node).size() - 1;
  } else {
    own_first.name = fmt::format("rank {} of this node", own_first.rank);
    plan.watched.push_back(std::move(own_first));
  }
  return std::make_unique<runtime::Heartbeat>(
      std::move(*socket), std::move(plan),
      [rank](const runtime::Silence& found) { heed(found, rank); });
}

}  // namespace

LaunchWatch::LaunchWatch(const runtime::Session& session, const grid::Group& world,
                         double longest_wait, double silence)
    : nodes_(world, runtime::host_name()),
      watchdog_(longest_wait,
                [this, rank = world.rank()](const Wait& wait, auto waited) {
                  give_up(wait, waited, rank, nodes_);
                }),
      heartbeat_(start(world, nodes_, silence)) {
  session.end_start();
}

}  // namespace kzero::comm
