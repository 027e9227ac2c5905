// The datagrams of a heartbeat. Each carries a keyed hash, so that only a process of the run can
// make one, and a counter, so that a recorded one does not count again.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "base/checksum.hpp"

namespace kzero::runtime {

struct HeartbeatMessage {
  enum class Kind : std::uint32_t { alive, ended, alarm, wake };

  Kind kind = Kind::alive;
  std::uint32_t from = 0, to = 0;  // ranks in the launch
  std::uint64_t counter = 0;       // of the sender; increases with every message to a rank
};

/// A message and its hash.
using SealedMessage = std::array<std::byte, 32>;

SealedMessage seal(const HeartbeatMessage& message, const SipKey& key);

/// Decides which datagrams are messages of the run to this rank.
class HeartbeatInbox {
 public:
  HeartbeatInbox(const SipKey& key, std::uint32_t rank) : key_(key), rank_(rank) {}

  /// Returns the message, or nullopt if it was made without the key, is for another rank, or is not
  /// newer than the last one of its sender. A message that arrives over two networks counts once.
  std::optional<HeartbeatMessage> accept(std::span<const std::byte> datagram);

 private:
  SipKey key_;
  std::uint32_t rank_;
  std::map<std::uint32_t, std::uint64_t> newest_{};  // counter of each sender
};

}  // namespace kzero::runtime
