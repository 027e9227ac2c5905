#include "base/descriptor.hpp"

#include <gtest/gtest.h>

namespace kzero {
namespace {

TEST(Uninterrupted, RepeatsACallUntilNoSignalInterruptsIt) {
  int calls = 0;
  const auto call = [&] {
    errno = EINTR;
    return ++calls < 4 ? -1 : 17;
  };
  EXPECT_EQ(uninterrupted(call), 17);
  EXPECT_EQ(calls, 4);
}

TEST(Uninterrupted, LeavesOtherFailuresToTheCaller) {
  int calls = 0;
  const auto call = [&] {
    ++calls;
    errno = EBADF;
    return -1;
  };
  EXPECT_EQ(uninterrupted(call), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace kzero
