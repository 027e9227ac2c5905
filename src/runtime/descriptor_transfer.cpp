#include "runtime/descriptor_transfer.hpp"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <system_error>

#include "base/descriptor.hpp"
#include "base/error.hpp"

namespace kzero::runtime {

namespace {

using Clock = std::chrono::steady_clock;

/// Throws the system's reason unless a call succeeded.
void check(bool ok, const char* what) {
  KZERO_REQUIRE(ok, ExitCode::other, "{}: {}", what, std::generic_category().message(errno));
}

int make_socket() {
  const int number = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  check(number >= 0, "a Unix socket cannot be opened");
  return number;
}

bool is_of_this_user(int connection) {
  ucred peer{};
  socklen_t bytes = sizeof peer;
  return getsockopt(connection, SOL_SOCKET, SO_PEERCRED, &peer, &bytes) == 0 &&
         peer.uid == geteuid();
}

/// A message of one byte that carries a descriptor (cmsg(3)).
struct Parcel {
  char byte = 0;
  iovec content{&byte, 1};
  alignas(cmsghdr) char room[CMSG_SPACE(sizeof(int))]{};
  msghdr header{};

  Parcel() {
    header.msg_iov = &content, header.msg_iovlen = 1;
    header.msg_control = room, header.msg_controllen = sizeof room;
  }
};

void send_descriptor(int connection, int descriptor) {
  Parcel parcel;
  cmsghdr* const part = CMSG_FIRSTHDR(&parcel.header);
  part->cmsg_level = SOL_SOCKET, part->cmsg_type = SCM_RIGHTS;
  part->cmsg_len = CMSG_LEN(sizeof descriptor);
  std::memcpy(CMSG_DATA(part), &descriptor, sizeof descriptor);
  check(uninterrupted([&] { return sendmsg(connection, &parcel.header, MSG_NOSIGNAL); }) == 1,
        "a descriptor cannot be sent");
}

}  // namespace

DescriptorSender::DescriptorSender() : socket_(make_socket()) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  socklen_t bytes = sizeof address.sun_family;  // no name: the system chooses one (unix(7))
  auto* const any = reinterpret_cast<sockaddr*>(&address);
  check(bind(socket_.number(), any, bytes) == 0, "a Unix socket cannot be named");
  check(listen(socket_.number(), SOMAXCONN) == 0, "a Unix socket cannot listen");
  bytes = sizeof address;
  check(getsockname(socket_.number(), any, &bytes) == 0, "a Unix socket has no name");
  name_.assign(address.sun_path, bytes - offsetof(sockaddr_un, sun_path));
}

void DescriptorSender::send(int descriptor, Index receivers, std::chrono::seconds patience) const {
  const auto deadline = Clock::now() + patience;
  while (receivers > 0) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd listener{socket_.number(), POLLIN, 0};
    const int ready = uninterrupted(
        [&] { return poll(&listener, 1, static_cast<int>(std::max<Index>(0, left))); });
    KZERO_REQUIRE(ready > 0, ExitCode::other,
                  "{} processes of the node did not connect within {} s", receivers,
                  patience.count());
    const Descriptor connection(
        uninterrupted([&] { return accept4(socket_.number(), nullptr, nullptr, SOCK_CLOEXEC); }));
    check(connection.number() >= 0, "a connection cannot be accepted");
    if (!is_of_this_user(connection.number())) continue;
    send_descriptor(connection.number(), descriptor);
    --receivers;
  }
}

int receive_descriptor(const std::string& name, std::chrono::seconds patience) {
  const Descriptor connection(make_socket());
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  KZERO_EXPECT(name.size() <= sizeof address.sun_path);
  name.copy(address.sun_path, sizeof address.sun_path);
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size());
  const timeval limit{patience.count(), 0};
  setsockopt(connection.number(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  check(uninterrupted([&] {
          return connect(connection.number(), reinterpret_cast<sockaddr*>(&address), bytes);
        }) == 0,
        "the socket of another process of the node cannot be reached");
  Parcel parcel;
  const auto received =
      uninterrupted([&] { return recvmsg(connection.number(), &parcel.header, MSG_CMSG_CLOEXEC); });
  check(received >= 0, "another process of the node sent no descriptor");
  const cmsghdr* const part = CMSG_FIRSTHDR(&parcel.header);
  KZERO_REQUIRE(received == 1 && part != nullptr && part->cmsg_type == SCM_RIGHTS, ExitCode::other,
                "another process of the node closed its connection without a descriptor");
  int descriptor = -1;
  std::memcpy(&descriptor, CMSG_DATA(part), sizeof descriptor);
  return descriptor;
}

}  // namespace kzero::runtime
