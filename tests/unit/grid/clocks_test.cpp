#include "grid/clocks.hpp"

#include <gtest/gtest.h>
#include <mpi.h>

#include <chrono>
#include <cstdlib>

namespace kzero::grid {
namespace {

constexpr std::int64_t lead = 1'000'000'000'000;  // of each rank's clock over the previous rank's

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

std::int64_t leading_clock() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return now() + rank * lead;
}

Group all_ranks() {
  MPI_Comm copy = MPI_COMM_NULL;
  MPI_Comm_dup(MPI_COMM_WORLD, &copy);
  return {copy, "world"};
}

TEST(Clocks, differ_by_what_round_trips_say) {
  const Group group = all_ranks();
  const ClockOffset found = measure_offset(group, &leading_clock, false);
  EXPECT_LE(std::abs(found.ahead - group.rank() * lead), found.accuracy);
  EXPECT_EQ(found.accuracy == 0, group.is_root());
}

TEST(Clocks, are_one_on_a_node) {
  const Group group = all_ranks();
  EXPECT_TRUE(is_on_root_node(group));
  const ClockOffset found = measure_offset(group, &leading_clock, true);
  EXPECT_EQ(found.ahead, 0);
  EXPECT_EQ(found.accuracy, 0);
}

/// Blocks have 1 MiB: less than one, exactly two, and a little more than two.
TEST(HandToRoot, brings_all_bytes_in_rank_order) {
  const Group group = all_ranks();
  const auto bytes_of = [](int rank) {
    const std::size_t sizes[] = {5, std::size_t{2} << 20, (std::size_t{2} << 20) + 3, 0};
    std::vector<std::byte> bytes(sizes[rank % 4]);
    for (std::size_t i = 0; i < bytes.size(); ++i)
      bytes[i] = static_cast<std::byte>((i + static_cast<std::size_t>(rank)) % 251);
    return bytes;
  };
  std::vector<std::vector<std::byte>> found(static_cast<std::size_t>(group.size()));
  int last = 0;
  hand_to_root(group, bytes_of(group.rank()), [&](int rank, std::span<const std::byte> block) {
    EXPECT_GE(rank, last);
    last = rank;
    auto& bytes = found[rank];
    bytes.insert(bytes.end(), block.begin(), block.end());
  });
  for (int rank = 0; rank < group.size(); ++rank) {
    const auto& bytes = found[rank];
    EXPECT_TRUE(group.is_root() ? bytes == bytes_of(rank) : bytes.empty()) << "rank " << rank;
  }
}

}  // namespace
}  // namespace kzero::grid
