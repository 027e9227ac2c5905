#include "runtime/heartbeat_message.hpp"

#include <algorithm>

namespace kzero::runtime {

namespace {

constexpr std::size_t content_bytes = 24;
constexpr std::size_t hash_at = content_bytes;

template <class T>
void put(SealedMessage& bytes, std::size_t at, T value) {
  for (std::size_t i = 0; i < sizeof value; ++i)
    bytes[at + i] = static_cast<std::byte>(value >> (8 * i));
}

template <class T>
T get(const SealedMessage& bytes, std::size_t at) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i)
    value |= std::to_integer<T>(bytes[at + i]) << (8 * i);
  return value;
}

std::uint64_t hash_of(const SealedMessage& bytes, const SipKey& key) {
  return siphash(key, std::span(bytes).first(content_bytes));
}

}  // namespace

SealedMessage seal(const HeartbeatMessage& message, const SipKey& key) {
  SealedMessage bytes{};
  put(bytes, 0, message.counter);
  put(bytes, 8, static_cast<std::uint32_t>(message.kind));
  put(bytes, 12, message.from);
  put(bytes, 16, message.to);  // four bytes follow that are 0
  put(bytes, hash_at, hash_of(bytes, key));
  return bytes;
}

std::optional<HeartbeatMessage> HeartbeatInbox::accept(std::span<const std::byte> datagram) {
  SealedMessage bytes{};
  if (datagram.size() != bytes.size()) return std::nullopt;
  std::ranges::copy(datagram, bytes.begin());
  if (get<std::uint64_t>(bytes, hash_at) != hash_of(bytes, key_)) return std::nullopt;
  const HeartbeatMessage message{
      .kind = static_cast<HeartbeatMessage::Kind>(get<std::uint32_t>(bytes, 8)),
      .from = get<std::uint32_t>(bytes, 12),
      .to = get<std::uint32_t>(bytes, 16),
      .counter = get<std::uint64_t>(bytes, 0)};
  if (message.to != rank_ || message.counter <= newest_[message.from]) return std::nullopt;
  newest_[message.from] = message.counter;
  return message;
}

}  // namespace kzero::runtime
