#include <gtest/gtest.h>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/types.hpp"
#include "base/version.hpp"

namespace kzero {

namespace {

TEST(FormatBytes, UsesTheLargestBinaryUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1024), "1.00 KiB");
  EXPECT_EQ(format_bytes(Index{3} << 29), "1.50 GiB");
  EXPECT_EQ(format_bytes(Index{1} << 50), "1.00 PiB");
  EXPECT_EQ(format_bytes(Index{1} << 62), "4096.00 PiB");
}

TEST(Integers, DivideAndRoundUp) {
  EXPECT_EQ(ceil_div(0, 7), 0);
  EXPECT_EQ(ceil_div(14, 7), 2);
  EXPECT_EQ(ceil_div(15, 7), 3);
  EXPECT_EQ(round_up(15, 7), 21);
  EXPECT_EQ(round_up(Index{1} << 40, 64), Index{1} << 40);
}

TEST(Errors, CarryTheirExitCodeAndText) {
  try {
    KZERO_REQUIRE(1 + 1 == 3, ExitCode::files, "{} is {} bytes", "a.bin", 3);
    FAIL() << "a false condition passed";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_STREQ(error.what(), "a.bin is 3 bytes");
  }
  EXPECT_NO_THROW(KZERO_REQUIRE(true, ExitCode::files, "not raised"));
}

TEST(Version, NamesTheBuild) {
  for (const std::string& fact : {version(), git_hash(), compiler(), build_type()})
    EXPECT_FALSE(fact.empty());
}

}  // namespace

}  // namespace kzero
