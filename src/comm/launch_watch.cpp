#include "comm/launch_watch.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "comm/alarm.hpp"
#include "runtime/host_name.hpp"

namespace kzero::comm {

namespace {

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
