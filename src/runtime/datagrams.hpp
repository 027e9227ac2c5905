// Datagrams (UDP) between the processes of a run, independent of MPI. They arrive while MPI waits,
// and losing one does not delay later ones.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace kzero::runtime {

/// An address and a port. IPv4 addresses are stored as IPv4-mapped IPv6 addresses (RFC 4291,
/// section 2.5.5.2).
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  bool operator==(const Endpoint&) const = default;
};

class DatagramSocket {
 public:
  /// Binds a free port on all interfaces. Throws Error(other) if the system refuses.
  DatagramSocket();
  ~DatagramSocket();
  DatagramSocket(DatagramSocket&& other) noexcept;
  DatagramSocket(const DatagramSocket&) = delete;
  DatagramSocket& operator=(const DatagramSocket&) = delete;
  DatagramSocket& operator=(DatagramSocket&&) = delete;

  /// The addresses at which other nodes may reach this socket: one for each address of an interface
  /// that is up, without loopback and link-local addresses.
  std::vector<Endpoint> endpoints() const;

  /// The address at which processes of this node reach it.
  Endpoint loopback() const;

  /// Sends one datagram. A datagram that cannot be delivered is lost without an error.
  void send(const Endpoint& to, std::span<const std::byte> content) const;

  struct Received {
    Endpoint from{};
    std::size_t bytes = 0;
  };

  /// Waits at most `patience` for a datagram and copies it to `room`; a longer one is truncated.
  std::optional<Received> receive(std::span<std::byte> room,
                                  std::chrono::duration<double> patience) const;

 private:
  int socket_ = -1;
  bool has_six_ = true;  // IPv6, which carries IPv4 too; some kernels lack it
  std::uint16_t port_ = 0;
};

}  // namespace kzero::runtime
