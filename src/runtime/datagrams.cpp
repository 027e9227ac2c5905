#include "runtime/datagrams.hpp"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.hpp"

namespace kzero::runtime {

namespace {

using Address = std::array<std::uint8_t, 16>;

constexpr std::size_t prefix = 12;  // of an IPv4 address that is stored as an IPv6 one

Address mapped(const in_addr& four) {
  Address address{};
  address[10] = address[11] = 0xff;
  std::memcpy(address.data() + prefix, &four, sizeof four);
  return address;
}

Address plain(const in6_addr& six) {
  Address address{};
  std::memcpy(address.data(), &six, sizeof six);
  return address;
}

/// An endpoint in the system's format, for a socket of either family.
struct SystemAddress {
  sockaddr_storage storage{};
  socklen_t bytes = sizeof(sockaddr_storage);

  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

SystemAddress to_system(const Endpoint& endpoint, bool has_six) {
  SystemAddress result;
  if (has_six) {
    sockaddr_in6 six{};
    six.sin6_family = AF_INET6;
    six.sin6_port = htons(endpoint.port);
    std::memcpy(&six.sin6_addr, endpoint.address.data(), sizeof six.sin6_addr);
    std::memcpy(&result.storage, &six, sizeof six);
    result.bytes = sizeof six;
  } else {
    sockaddr_in four{};
    four.sin_family = AF_INET;
    four.sin_port = htons(endpoint.port);
    std::memcpy(&four.sin_addr, endpoint.address.data() + prefix, sizeof four.sin_addr);
    std::memcpy(&result.storage, &four, sizeof four);
    result.bytes = sizeof four;
  }
  return result;
}

Endpoint from_system(const SystemAddress& system) {
  if (system.storage.ss_family == AF_INET6) {
    sockaddr_in6 six{};
    std::memcpy(&six, &system.storage, sizeof six);
    return {plain(six.sin6_addr), ntohs(six.sin6_port)};
  }
  sockaddr_in four{};
  std::memcpy(&four, &system.storage, sizeof four);
  return {mapped(four.sin_addr), ntohs(four.sin_port)};
}

/// The address of an interface, if other nodes may reach it.
std::optional<Address> reachable(const ifaddrs& interface, bool has_six) {
  if (interface.ifa_addr == nullptr || (interface.ifa_flags & IFF_UP) == 0 ||
      (interface.ifa_flags & IFF_LOOPBACK) != 0)
    return std::nullopt;
  SystemAddress system;
  const auto family = interface.ifa_addr->sa_family;
  if (family != AF_INET && (family != AF_INET6 || !has_six)) return std::nullopt;
  std::memcpy(&system.storage, interface.ifa_addr,
              family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  const Address address = from_system(system).address;
  const bool is_link_local =
      family == AF_INET6 && address[0] == 0xfe && (address[1] & 0xc0) == 0x80;
  return is_link_local ? std::nullopt : std::optional(address);
}

}  // namespace

DatagramSocket::DatagramSocket() {
  socket_ = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  const int no = 0;
  has_six_ = socket_ >= 0 && ::setsockopt(socket_, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof no) == 0;
  if (!has_six_) {
    if (socket_ >= 0) ::close(socket_);
    socket_ = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  }
  SystemAddress any;  // all zeros: any address, any port
  any.storage.ss_family = has_six_ ? AF_INET6 : AF_INET;
  any.bytes = has_six_ ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
  SystemAddress own;
  const bool good = socket_ >= 0 && ::bind(socket_, any.get(), any.bytes) == 0 &&
                    ::getsockname(socket_, own.get(), &own.bytes) == 0;
  const std::string reason = std::strerror(errno);
  if (!good && socket_ >= 0) ::close(socket_);
  KZERO_REQUIRE(good, ExitCode::other, "cannot open a socket for datagrams ({})", reason);
  port_ = from_system(own).port;
}

DatagramSocket::~DatagramSocket() {
  if (socket_ >= 0) ::close(socket_);
}

DatagramSocket::DatagramSocket(DatagramSocket&& other) noexcept
    : socket_(std::exchange(other.socket_, -1)), has_six_(other.has_six_), port_(other.port_) {}

std::vector<Endpoint> DatagramSocket::endpoints() const {
  std::vector<Endpoint> found;
  ifaddrs* interfaces = nullptr;
  if (::getifaddrs(&interfaces) != 0) return found;
  for (const ifaddrs* one = interfaces; one != nullptr; one = one->ifa_next) {
    if (const auto address = reachable(*one, has_six_)) found.push_back({*address, port_});
  }
  ::freeifaddrs(interfaces);
  return found;
}

Endpoint DatagramSocket::loopback() const {
  in_addr four{};
  four.s_addr = htonl(INADDR_LOOPBACK);
  return {mapped(four), port_};
}

void DatagramSocket::send(const Endpoint& to, std::span<const std::byte> content) const {
  SystemAddress system = to_system(to, has_six_);
  (void)::sendto(socket_, content.data(), content.size(), MSG_NOSIGNAL, system.get(), system.bytes);
}

std::optional<DatagramSocket::Received> DatagramSocket::receive(
    std::span<std::byte> room, std::chrono::duration<double> patience) const {
  pollfd waiting{.fd = socket_, .events = POLLIN, .revents = 0};
  const auto milliseconds = static_cast<int>(std::ceil(std::max(0.0, patience.count()) * 1e3));
  if (::poll(&waiting, 1, milliseconds) <= 0) return std::nullopt;
  SystemAddress from;
  const auto bytes = ::recvfrom(socket_, room.data(), room.size(), 0, from.get(), &from.bytes);
  if (bytes < 0) return std::nullopt;
  return Received{from_system(from), static_cast<std::size_t>(bytes)};
}

}  // namespace kzero::runtime
