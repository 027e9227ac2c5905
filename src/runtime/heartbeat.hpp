// Signs of life between the nodes of a run. A node without power closes no connection, so MPI waits
// for it for ever; here its silence is noticed, however long the steps are. One rank of each node
// sends a datagram every few seconds to the nodes before and after it in a ring and listens for
// theirs. The other ranks of a node do the same with that one. Nothing here is collective.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/datagrams.hpp"

namespace kzero::runtime {

struct HeartbeatPeer {
  std::uint32_t rank = 0;             // in the launch
  std::string name{};                 // for messages: "node node3 (rank 2)"
  std::vector<Endpoint> endpoints{};  // each gets every datagram
};

struct HeartbeatPlan {
  std::uint64_t run = 0;                 // the same on all ranks; datagrams of others are ignored
  std::uint32_t rank = 0;                // of this process
  double silence = 0;                    // seconds without a sign of life that raise the alarm
  std::vector<HeartbeatPeer> watched{};  // they get this process's signs of life, and give theirs
  std::vector<HeartbeatPeer> told{};     // they are told when this process raises the alarm
  std::size_t followers = 0;  // at most so many others may watch this process, and are told too
};

/// What a heartbeat noticed.
struct Silence {
  enum class Kind {
    peer,         // a peer is silent
    all,          // all of at least two peers are: this node may be the one that is cut off
    told,         // another rank raised the alarm
    never_heard,  // a peer was not heard since the start: the network may drop datagrams
  };
  Kind kind = Kind::peer;
  std::vector<std::string> names{};  // of the silent peers
  double seconds = 0;
};

class Heartbeat {
 public:
  /// Called on the heartbeat's thread: once for a silence, after which nothing more is sent, and
  /// before that once for all peers that were never heard, which raises no alarm.
  using Alarm = std::function<void(const Silence&)>;

  Heartbeat(DatagramSocket socket, HeartbeatPlan plan, Alarm alarm);

  /// Tells the peers that this process ends in order, so that they no longer listen for it.
  ~Heartbeat();
  Heartbeat(const Heartbeat&) = delete;
  Heartbeat& operator=(const Heartbeat&) = delete;

 private:
  enum class Message : std::uint32_t { alive, ended, alarm, wake };
  struct Datagram {
    std::uint64_t run = 0;
    Message message = Message::alive;
    std::uint32_t rank = 0;  // of the sender
  };
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
  void send(Message message, const Endpoint& to) const;
  void send_to_all(Message message) const;

  const DatagramSocket socket_;
  const HeartbeatPlan plan_;
  const Alarm alarm_;
  std::vector<Watched> watched_;
  std::vector<Follower> followers_;
  double running_ = 0;  // seconds since the start, as counted for silences
  bool mentioned_ = false;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace kzero::runtime
