#include "memory/arenas.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kzero::memory {

namespace {

constexpr Index large = Index{3} << 20;  // spans huge pages

/// Allocates as a model might: odd sizes, alternating categories. Returns the addresses.
std::vector<std::uintptr_t> take_ranges(Arenas& arenas) {
  std::vector<std::uintptr_t> ranges;
  const auto keep = [&](auto* range) { ranges.push_back(reinterpret_cast<std::uintptr_t>(range)); };
  keep(arenas.take<float>(Category::parameters, 1));
  keep(arenas.take<std::uint16_t>(Category::gradients, 33));
  keep(arenas.take<float>(Category::parameters, 17));
  keep(arenas.take<std::byte>(Category::parameters, large));
  keep(arenas.take<double>(Category::parameters, 8));
  keep(arenas.take<std::uint16_t>(Category::gradients, 64));
  return ranges;
}

TEST(Arenas, MeasuringHandsOutNothingAndCounts) {
  Arenas arenas;
  EXPECT_TRUE(arenas.measuring());
  for (const auto range : take_ranges(arenas)) EXPECT_EQ(range, 0U);
  // Each range is rounded up to 64 bytes: 4, 68, 3 MiB and 64 bytes; 66 and 128 bytes.
  EXPECT_EQ(arenas.bytes()[position(Category::parameters)], 64 + 128 + large + 64);
  EXPECT_EQ(arenas.bytes()[position(Category::gradients)], 128 + 128);
  EXPECT_EQ(arenas.bytes()[position(Category::optimizer)], 0);
}

// The sizes of a huge deck once overflowed 64 bits, and the plan showed negative bytes.
TEST(Arenas, MeasuringEndsBeforeCountsOverflow) {
  Arenas arenas;
  arenas.take<float>(Category::activations, Index{1} << 55);
  arenas.take<float>(Category::workspace, Index{1} << 55);  // each category has its own count
  arenas.take<float>(Category::activations, (Index{1} << 55) - 16);
  EXPECT_THROW(arenas.take<float>(Category::activations, 17), Error);
  EXPECT_THROW(arenas.take<float>(Category::workspace, Index{1} << 60), Error);
  EXPECT_NO_THROW(arenas.take<float>(Category::activations, 1));
  EXPECT_THROW(arenas.take_shared<float>(Category::io, Index{1} << 40, 1 << 20), Error);
  EXPECT_NO_THROW(arenas.take_shared<float>(Category::io, Index{1} << 40, 1 << 10));
}

TEST(Arenas, AllocatedOnesRepeatTheMeasuredLayout) {
  Arenas measured;
  take_ranges(measured);
  Ledger ledger;
  Arenas arenas(measured, ledger);
  EXPECT_FALSE(arenas.measuring());
  const auto ranges = take_ranges(arenas);
  EXPECT_EQ(arenas.bytes(), measured.bytes());
  for (const auto range : ranges) EXPECT_EQ(range % 64, 0U);
  EXPECT_EQ(ranges[2] - ranges[0], 64U);
  EXPECT_EQ(ranges[3] - ranges[2], 128U);
  EXPECT_EQ(ranges[4] - ranges[3], static_cast<std::uintptr_t>(large));
  EXPECT_EQ(ranges[5] - ranges[1], 128U);
  for (std::size_t i = 0; i < category_count; ++i) {
    EXPECT_EQ(ledger.now(static_cast<Category>(i)), measured.bytes()[i]) << category_names[i];
  }
}

/// A range, then three layouts of the same memory, of which the second is the longest, then another
/// range.
std::vector<std::uintptr_t> take_shared(Arenas& arenas) {
  std::vector<std::uintptr_t> ranges;
  const auto take = [&](Category category, Index count) {
    ranges.push_back(reinterpret_cast<std::uintptr_t>(arenas.take<float>(category, count)));
  };
  take(Category::workspace, 1);
  arenas.share(
      Category::workspace, [&] { take(Category::workspace, 16); },
      [&] {
        take(Category::workspace, 17);
        take(Category::io, 16);  // another category is not shared
        take(Category::workspace, 16);
      },
      [&] { take(Category::workspace, 32); });
  take(Category::workspace, 1);
  return ranges;
}

TEST(Arenas, LayoutsThatShareMemoryCountOnceByTheLongest) {
  Arenas measured;
  take_shared(measured);
  EXPECT_EQ(measured.bytes()[position(Category::workspace)], 64 + 128 + 64 + 64);
  EXPECT_EQ(measured.bytes()[position(Category::io)], 64);
  Ledger ledger;
  Arenas arenas(measured, ledger);
  const auto ranges = take_shared(arenas);
  EXPECT_EQ(arenas.bytes(), measured.bytes());
  const std::uintptr_t shared = ranges[0] + 64;
  EXPECT_EQ(ranges[1], shared);
  EXPECT_EQ(ranges[2], shared);
  EXPECT_EQ(ranges[4], shared + 128);
  EXPECT_EQ(ranges[5], shared);
  EXPECT_EQ(ranges[6], shared + 128 + 64);
}

/// Memory that could be shared.
class OneProcess : public SharedMemory {
 public:
  explicit OneProcess(Index bytes) : bytes_(static_cast<std::size_t>(bytes)) {}
  std::byte* data() const override { return const_cast<std::byte*>(bytes_.data()); }
  void meet() const override {}

 private:
  std::vector<std::byte> bytes_;
};

/// A range of a slab, two that three ranks share, and another one of the slab.
std::vector<std::byte*> take_both_kinds(Arenas& arenas) {
  constexpr auto category = Category::parameters;
  return {arenas.take<std::byte>(category, 64), arenas.take_shared<std::byte>(category, 128, 3),
          arenas.take_shared<std::byte>(category, 64, 3), arenas.take<std::byte>(category, 64)};
}

TEST(Arenas, CountARanksShareOfSharedMemory) {
  Arenas measured;
  take_both_kinds(measured);
  EXPECT_EQ(measured.bytes()[position(Category::parameters)], 2 * 64 + 128 + 64);
  EXPECT_EQ(measured.shared_bytes(), 3 * (128 + 64));
  EXPECT_EQ(measured.shared(), nullptr);
  const OneProcess memory(measured.shared_bytes());
  Ledger ledger;
  {
    Arenas arenas(measured, ledger, &memory);
    const auto ranges = take_both_kinds(arenas);
    EXPECT_EQ(arenas.bytes(), measured.bytes());
    EXPECT_EQ(ledger.now(Category::parameters), 2 * 64 + 128 + 64);
    EXPECT_EQ(ranges[1], memory.data());
    EXPECT_EQ(ranges[2], memory.data() + 3 * 128);
    EXPECT_EQ(ranges[3], ranges[0] + 64) << "slabs have no shared ranges";
    EXPECT_THROW(arenas.take_shared<std::byte>(Category::parameters, 64, 3), Error);
    EXPECT_THROW(arenas.take<std::byte>(Category::parameters, 64), Error);
  }
  EXPECT_EQ(ledger.now(Category::parameters), 0);
  EXPECT_THROW(Arenas(measured, ledger), Error) << "the shared memory is missing";
}

TEST(Arenas, TakingMoreThanWasMeasuredFails) {
  Arenas measured;
  measured.take<float>(Category::workspace, 16);
  Ledger ledger;
  Arenas arenas(measured, ledger);
  EXPECT_NE(arenas.take<float>(Category::workspace, 16), nullptr);
  try {
    arenas.take<float>(Category::workspace, 1);
    FAIL() << "a range past the slab was handed out";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("workspace"), std::string::npos) << error.what();
  }
  EXPECT_THROW(arenas.take<float>(Category::io, 1), Error) << "nothing was measured for io";
}

TEST(Arenas, GiveTheirBytesBackAndLeaveThePeak) {
  Arenas measured;
  measured.take<float>(Category::optimizer, 100);
  Ledger ledger;
  {
    Arenas first(measured, ledger);
    Arenas moved(std::move(first));
    EXPECT_EQ(ledger.now(Category::optimizer), 448);
    Arenas second(measured, ledger);
    EXPECT_EQ(ledger.now(Category::optimizer), 896);
  }
  EXPECT_EQ(ledger.now(Category::optimizer), 0);
  EXPECT_EQ(ledger.peak(Category::optimizer), 896);
}

TEST(Arenas, MemoryThatIsNotToBeHadNamesItsCategory) {
  Arenas measured;
  measured.take<float>(Category::parameters, 1000);
  measured.take<std::byte>(Category::optimizer, Index{1} << 58);  // exceeds any address space
  Ledger ledger;
  try {
    const Arenas arenas(measured, ledger);
    FAIL() << "256 PiB were allocated";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::memory);
    EXPECT_NE(std::string(error.what()).find("optimizer"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("256.00 PiB"), std::string::npos) << error.what();
  }
  EXPECT_EQ(ledger.now(Category::parameters), 0) << "what had been allocated is given back";
  EXPECT_EQ(ledger.now(Category::optimizer), 0);
}

}  // namespace

}  // namespace kzero::memory
