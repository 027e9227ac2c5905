// Ranges as they are stored, and the small storage for a column split.
#include "checkpoint/format/runs.hpp"

#include <chrono>

#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

TEST(Runs, HoldTheSameElementsInTheSameOrder) {
  const std::vector<std::vector<Range>> cases{{},
                                              {{7, 3}},
                                              {{0, 4}, {10, 4}, {20, 4}},
                                              {{0, 4}, {10, 4}, {21, 4}, {32, 4}},
                                              {{5, 1}, {10, 4}, {20, 4}, {30, 2}, {32, 2}, {40, 4}},
                                              {{30, 4}, {20, 4}, {10, 4}, {50, 4}, {0, 1}},
                                              {{0, 4}, {4, 4}, {8, 4}}};
  for (const auto& ranges : cases) {
    const auto runs = compact(ranges);
    EXPECT_EQ(expand(runs), ranges);
    EXPECT_EQ(elements_of(runs), elements_of(ranges));
    EXPECT_LE(runs.size(), ranges.size());
  }
}

TEST(Runs, AColumnCutIsOneRun) {
  std::vector<Range> ranges;  // a third of q, k and v in each row of a [1000, 3 * 900] matrix
  for (Index third = 0; third < 3000; ++third) ranges.push_back({third * 900 + 300, 300});
  EXPECT_EQ(compact(ranges), (std::vector<checkpoint::Run>{{300, 300, 900, 3000}}));
  // A flat data-parallel shard of it begins and ends within a row.
  ranges.front() = {350, 250};
  ranges.back().count = 17;
  EXPECT_EQ(compact(ranges).size(), 3U);
}

using Cuts = CheckpointTest;

TEST_F(Cuts, OfManyShortRangesTakeLittleTimeAndASmallManifest) {
  const std::vector<Parameter> model{{"h.0.attn.c_attn.weight", {20000, 48}},
                                     {"h.0.mlp.c_fc.weight", {20000, 32}}};
  const Share share = filled(column_share(model, world.rank(), world.size()), model, 3);
  const auto begin = std::chrono::steady_clock::now();
  write(world, folder, manifest_at(3, model), share.shards, 0);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_LT(fs::file_size(found->path / manifest_name), 40'000U);
  Share flat = flat_share(model, world.rank(), world.size());
  read(*found, flat.shards);
  EXPECT_EQ(wrong_values(flat, model, 3), 0);
  Share columns = column_share(model, world.size() - 1 - world.rank(), world.size());
  read(*found, columns.shards);
  EXPECT_EQ(wrong_values(columns, model, 3), 0);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  EXPECT_LT(seconds.count(), 20);  // takes tenths of a second; quadratic time takes minutes
}

}  // namespace

}  // namespace kzero::checkpoint
