#include "deck/quantity.hpp"

#include <gtest/gtest.h>

namespace kzero::deck {
namespace {

TEST(Size, reads_binary_units_and_plain_bytes) {
  EXPECT_EQ(parse_size("0"), 0);
  EXPECT_EQ(parse_size("4096"), 4096);
  EXPECT_EQ(parse_size("17B"), 17);
  EXPECT_EQ(parse_size("64KiB"), 65536);
  EXPECT_EQ(parse_size("32MiB"), Index{32} << 20);
  EXPECT_EQ(parse_size("1 GiB"), Index{1} << 30);
  EXPECT_EQ(parse_size("2TiB"), Index{2} << 40);
}

TEST(Size, reads_decimal_units) {
  EXPECT_EQ(parse_size("64kB"), 64'000);
  EXPECT_EQ(parse_size("64KB"), 64'000);
  EXPECT_EQ(parse_size("32MB"), 32'000'000);
  EXPECT_EQ(parse_size("1 GB"), 1'000'000'000);
  EXPECT_EQ(parse_size("2TB"), 2'000'000'000'000);
}

TEST(Count, reads_whole_numbers_however_they_are_written) {
  EXPECT_EQ(parse_count("64"), 64);
  EXPECT_EQ(parse_count("4.0"), 4);
  EXPECT_EQ(parse_count("1e3"), 1000);
  EXPECT_EQ(parse_count("1.5e1"), 15);
  EXPECT_EQ(parse_count("9007199254740992"), Index{1} << 53);
}

TEST(Count, refuses_what_is_no_whole_number) {
  for (const char* text :
       {"", "-1", "+1", "4.5", "1e-3", "1e16", "1e999", "nan", "inf", "4x", "0x4", " 4", "4,2"}) {
    EXPECT_FALSE(parse_count(text)) << text;
  }
}

TEST(Size, refuses_what_is_no_size) {
  for (const char* text :
       {"", "MiB", "-1", "+1", "1.5GiB", "32Mb", "32mib", "1GiB ", " 1GiB", "1GiB2", "0x10",
        "9223372036854775808", "8388608TiB", "9223373TB", "1KiB1B"}) {
    EXPECT_FALSE(parse_size(text)) << text;
  }
}

TEST(Size, prints_what_it_reads) {
  for (const Index bytes : {Index{0}, Index{1}, Index{1023}, Index{1024}, Index{1536},
                            Index{32} << 20, (Index{1} << 40) + 1, Index{3} << 50}) {
    EXPECT_EQ(parse_size(format_size(bytes)), bytes);
  }
  EXPECT_EQ(format_size(Index{32} << 20), "32MiB");
  EXPECT_EQ(format_size(1536), "1536B");
}

TEST(Duration, reads_units_in_falling_order) {
  EXPECT_EQ(parse_duration("60"), 60);
  EXPECT_EQ(parse_duration("0.25"), 0.25);
  EXPECT_EQ(parse_duration("45s"), 45);
  EXPECT_EQ(parse_duration("90min"), 5400);
  EXPECT_EQ(parse_duration("2h"), 7200);
  EXPECT_EQ(parse_duration("0.5h"), 1800);
  EXPECT_EQ(parse_duration("1h30min"), 5400);
  EXPECT_EQ(parse_duration("1 h 30 min 5 s"), 5405);
  EXPECT_EQ(parse_duration("2d"), 172800);
}

TEST(Duration, refuses_what_is_no_time) {
  for (const char* text : {"", "s", "-1s", "1m", "1hour", "30min1h", "1h1h", "1h30", "1h ", " 1h",
                           "inf", "nan", "1:30", "1e999", "1e304d"}) {
    EXPECT_FALSE(parse_duration(text)) << text;
  }
}

TEST(Duration, prints_what_it_reads) {
  for (const double seconds :
       {0.0, 0.25, 1.0, 59.0, 60.0, 3600.0, 5405.0, 172800.0, 0.1, 1e-9, 1e16}) {
    EXPECT_EQ(parse_duration(format_duration(seconds)), seconds);
  }
  EXPECT_EQ(format_duration(5400), "1h30min");
  EXPECT_EQ(format_duration(0), "0s");
}

}  // namespace
}  // namespace kzero::deck
