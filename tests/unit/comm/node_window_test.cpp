#include "comm/node_window.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>

#include "grid/process_grid.hpp"

namespace kzero::comm {
namespace {

/// A window with one number for each rank of the group.
std::span<Index> numbers(const NodeWindow& window, const grid::Group& group) {
  return {reinterpret_cast<Index*>(window.data()), static_cast<std::size_t>(group.size())};
}

TEST(NodeWindow, ShowsEachRankWhatTheOthersWrote) {
  const grid::Group group = grid::world_group();
  const NodeWindow window(group, group.size() * static_cast<Index>(sizeof(Index)), "");
  const auto all = numbers(window, group);
  EXPECT_TRUE(std::ranges::all_of(all, [](Index number) { return number == 0; }));
  window.meet();
  for (Index round = 1; round <= 50; ++round) {
    all[group.rank()] = round * 100 + group.rank();
    window.meet();
    for (Index r = 0; r < group.size(); ++r) EXPECT_EQ(all[r], round * 100 + r);
    window.meet();
  }
}

TEST(NodeWindow, OfOneGroupIsNotThatOfAnother) {
  const grid::Group world = grid::world_group();
  const grid::Group half = world.part(world.rank() % 2, "half");
  const NodeWindow first(half, 8 * world.size(), ""), second(half, 8 * world.size(), "");
  numbers(first, half)[half.rank()] = world.rank() + 1;
  first.meet();
  for (Index r = 0; r < half.size(); ++r) {
    EXPECT_EQ(numbers(first, half)[r], half.launch_rank(static_cast<int>(r)) + 1);
    EXPECT_EQ(numbers(second, half)[r], 0);
  }
}

// A window of one rank may end while others use theirs.
TEST(NodeWindow, EndsOnEachRankAlone) {
  const grid::Group group = grid::world_group();
  auto window = std::make_unique<NodeWindow>(group, 8 * group.size(), "");
  numbers(*window, group)[group.rank()] = 7;
  window->meet();
  if (group.is_root()) window.reset();
  group.barrier();
  if (window) {
    EXPECT_EQ(numbers(*window, group)[0], 7);
  }
}

TEST(NodeWindow, LeavesNoFileAndNoDescriptor) {
  const grid::Group group = grid::world_group();
  const auto descriptors = [] {
    return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {});
  };
  const auto before = descriptors();
  const NodeWindow window(group, 1 << 20, "");
  EXPECT_EQ(descriptors(), before);
}

TEST(NodeWindow, ThatCannotBeHadNamesItsSize) {
  const grid::Group group = grid::world_group();
  try {
    const NodeWindow window(group, Index{1} << 60, "share less");
    ADD_FAILURE() << "an exbibyte";
  } catch (const grid::AgreedError& error) {
    EXPECT_EQ(error.code(), ExitCode::memory);
    const std::string text = error.what();
    EXPECT_NE(text.find("cannot share 1024.00 PiB of memory for parameters"), std::string::npos)
        << text;
    EXPECT_NE(text.find("; share less"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace kzero::comm
