#include "runtime/descriptor_transfer.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <thread>

#include "base/error.hpp"

namespace kzero::runtime {
namespace {

using namespace std::chrono_literals;

TEST(DescriptorTransfer, GivesEachReceiverTheSameFile) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const Descriptor out(ends[0]), in(ends[1]);
  const DescriptorSender sender;
  std::thread receivers([&] {
    for (const char letter : {'a', 'b'}) {
      const Descriptor received(receive_descriptor(sender.name(), 10s));
      EXPECT_EQ(write(received.number(), &letter, 1), 1);
    }
  });
  sender.send(in.number(), 2, 10s);
  receivers.join();
  std::array<char, 2> letters{};
  EXPECT_EQ(read(out.number(), letters.data(), 2), 2);
  EXPECT_EQ(letters, (std::array{'a', 'b'}));
}

TEST(DescriptorTransfer, EndsIfNobodyComes) {
  const DescriptorSender sender;
  EXPECT_THROW(sender.send(0, 1, 0s), Error);
}

TEST(DescriptorTransfer, EndsIfNothingIsSent) {
  const DescriptorSender sender;
  EXPECT_THROW(receive_descriptor(sender.name(), 1s), Error);
}

TEST(DescriptorTransfer, EndsIfTheSenderIsGone) {
  std::string name;
  {
    const DescriptorSender sender;
    name = sender.name();
  }
  EXPECT_THROW(receive_descriptor(name, 1s), Error);
}

}  // namespace
}  // namespace kzero::runtime
