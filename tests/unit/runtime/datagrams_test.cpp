#include "runtime/datagrams.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string_view>

namespace kzero::runtime {
namespace {

TEST(Datagrams, ArriveWithTheirSender) {
  const DatagramSocket from, to;
  constexpr std::string_view text = "alive";
  from.send(to.loopback(), std::as_bytes(std::span(text)));
  std::array<std::byte, 16> room{};
  const auto received = to.receive(room, std::chrono::seconds(30));
  ASSERT_TRUE(received);
  EXPECT_EQ(received->from, from.loopback());
  ASSERT_EQ(received->bytes, text.size());
  EXPECT_EQ(std::memcmp(room.data(), text.data(), text.size()), 0);
}

TEST(Datagrams, AreNotWaitedForLongerThanAsked) {
  const DatagramSocket socket;
  std::array<std::byte, 16> room{};
  EXPECT_FALSE(socket.receive(room, std::chrono::milliseconds(10)));
}

TEST(Datagrams, GoThroughTheAddressesOfThisNode) {
  const DatagramSocket from, to;
  for (const Endpoint& endpoint : to.endpoints()) {  // empty on a machine without a network
    from.send(endpoint, std::as_bytes(std::span("x", 1)));
    std::array<std::byte, 16> room{};
    EXPECT_TRUE(to.receive(room, std::chrono::seconds(30)));
  }
}

}  // namespace
}  // namespace kzero::runtime
