// Signs of life between the nodes of a run. A node without power closes no connection, so MPI would
// wait for it for ever. The heartbeat notices its silence, however long the steps are. One rank of
// each node sends a datagram every few seconds to the nodes before and after it in a ring, and
// listens for theirs. The other ranks of a node do the same with that rank. Nothing here is
// collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/checksum.hpp"
#include "runtime/datagrams.hpp"
#include "runtime/heartbeat_message.hpp"

namespace kzero::runtime {

struct HeartbeatPeer {
  std::uint32_t rank = 0;             // in the launch
  std::string name{};                 // for messages: "node node3 (rank 2)"
  std::vector<Endpoint> endpoints{};  // each gets every datagram
};

struct HeartbeatPlan {
  SipKey key{};                          // random, the same on all ranks of a run, and secret
  std::uint32_t rank = 0;                // of this process
  double silence = 0;                    // seconds without a sign of life before the alarm
  std::vector<HeartbeatPeer> watched{};  // exchange signs of life with this process
  std::vector<HeartbeatPeer> told{};     // are told when this process raises the alarm
  std::size_t followers = 0;  // the most others that may watch this process; they are told too
};

/// Removes the addresses that several of the peers have, such as those of the bridges that
/// containers and virtual machines use on every node. A datagram to one of them would stay on the
/// sender's own node, where any user may receive it.
void remove_shared_addresses(std::vector<HeartbeatPeer>& peers);

/// The event that a heartbeat reports.
struct Silence {
  enum class Kind {
    peer,         // a peer is silent
    all,          // all of at least two peers are silent: this node may be the one that is cut off
    told,         // another rank raised the alarm
    never_heard,  // a peer was never heard: the network may drop datagrams
  };
  Kind kind = Kind::peer;
  std::vector<std::string> names{};  // of the silent peers
  double seconds = 0;
};

class Heartbeat {
 public:
  /// Called on the heartbeat's thread. It is called once for a silence, after which nothing more is
  /// sent. Before that it may be called once for all peers that were never heard, which is not an
  /// alarm.
  using Alarm = std::function<void(const Silence&)>;

  Heartbeat(DatagramSocket socket, HeartbeatPlan plan, Alarm alarm);

  /// Tells the peers that this process ends in order, so that they stop listening for it.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  using Kind = HeartbeatMessage::Kind;
  struct Watched {
    HeartbeatPeer peer;
    double silent = 0;  // seconds, counted while this process runs
    bool heard = false, ended = false;
  };
  struct Follower {
    std::uint32_t rank = 0;
    Endpoint endpoint{};
  };

  void run();
  bool listen(std::chrono::duration<double> patience);
  void note_alive(std::uint32_t rank, const Endpoint& from);
  void note_ended(std::uint32_t rank);
  bool look(double elapsed);
  void mention_unheard();
  void raise(const Silence& silence);
  void send(Kind kind, std::uint32_t rank, std::span<const Endpoint> endpoints);
  void send_to_all(Kind kind);

  const DatagramSocket socket_;
  const HeartbeatPlan plan_;
  const Alarm alarm_;
  std::vector<Watched> watched_;
  std::vector<Follower> followers_;
  HeartbeatInbox inbox_;
  std::atomic<std::uint64_t> sent_ = 0;  // messages
  double running_ = 0;                   // seconds since the start, as counted for silences
  bool mentioned_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace kzero::runtime
