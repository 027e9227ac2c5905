// Control messages count as time in which a rank waits for others.
#include <gtest/gtest.h>

#include <functional>

#include "base/waited.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"

namespace kzero::grid {
namespace {

TEST(WaitingTime, CountsControlMessages) {
  const Group group = world_group();
  std::vector<std::uint64_t> numbers(3);
  const std::vector<std::pair<const char*, std::function<void()>>> messages{
      {"barrier", [&] { group.barrier(); }},
      {"max", [&] { group.max(1); }},
      {"min", [&] { group.min(1); }},
      {"sum", [&] { group.sum(1.0); }},
      {"sum of numbers", [&] { group.sum(numbers); }},
      {"all_gather", [&] { group.all_gather(1.0); }},
      {"gather", [&] { group.gather("text"); }},
      {"broadcast", [&] { group.broadcast("text"); }},
      {"agreement", [&] { collectively(group, [] {}); }}};
  for (const auto& [name, message] : messages) {
    const double before = seconds_waited().all;
    for (int repeat = 0; repeat < 50; ++repeat) message();
    EXPECT_GT(seconds_waited().all, before) << name;
  }
}

}  // namespace
}  // namespace kzero::grid
