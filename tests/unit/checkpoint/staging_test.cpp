// State that the host cannot access is saved and loaded through staging of constant size. Files and
// values are the same for any size of state and staging.
#include "checkpoint/format/parameter_hash.hpp"
#include "checkpoint/format/state_blocks.hpp"
#include "unit/checkpoint/far_memory.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

std::string bytes_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

/// Slots for one element of three arrays, parts of rows, most of a matrix, and everything.
constexpr std::size_t slot_sizes[] = {3, 61, 2000, 100000};

/// An optimizer whose second array omits matrices.
param::StateArrays two_arrays() {
  return {{"master"}, {"second_moment", param::Extent::all_but_matrices}};
}

class StagingTest : public CheckpointTest {
 protected:
  using Cut = Share (*)(const std::vector<Parameter>&, Index, Index, const param::StateArrays&);

  Share cut_of(Cut cut, const param::StateArrays& arrays = three_arrays()) const {
    return cut(model, world.rank(), world.size(), arrays);
  }

  Manifest manifest_of(Index step, const param::StateArrays& arrays = three_arrays()) const {
    Manifest manifest = manifest_at(step, model);
    manifest.state_arrays = arrays;
    return manifest;
  }

  /// Expects two folders to have the same files, byte for byte.
  void expect_same_files(const fs::path& a, const fs::path& b) const {
    world.barrier();
    std::ptrdiff_t files = 0;
    for (const auto& entry : fs::directory_iterator(a)) {
      EXPECT_TRUE(bytes_of(entry.path()) == bytes_of(b / entry.path().filename())) << entry.path();
      ++files;
    }
    EXPECT_GE(files, 2);
    EXPECT_EQ(files, std::distance(fs::directory_iterator(b), fs::directory_iterator()));
    world.barrier();
  }

  const std::vector<Parameter> model = small_model();
};

TEST_F(StagingTest, SavesTheFilesOfStateInPlace) {
  Index step = 0;
  for (const auto& arrays : {three_arrays(), two_arrays()}) {
    for (const Cut cut : {flat_share, column_share}) {
      for (const Index ranks_per_file : {Index{1}, Index{world.size()}}) {
        const Share share = filled(cut_of(cut, arrays), model, 7);
        const auto written = write(world, folder / "in_place", manifest_of(++step, arrays),
                                   share.shards, 0, ranks_per_file);
        for (const std::size_t slot : slot_sizes) {
          FarMemory far;
          LateStaging staging(far, slot);
          const auto away = moved_away(share.shards, far, staging);
          const auto through = write(world, folder / std::to_string(slot),
                                     manifest_of(step, arrays), away, 0, ranks_per_file);
          expect_same_files(written.path, through.path);
          EXPECT_EQ(staging.under_way(), 0U);
        }
      }
    }
  }
}

TEST_F(StagingTest, RanksMayHaveDifferentOnes) {
  const Share share = filled(cut_of(flat_share), model, 7);
  const auto written = write(world, folder / "a", manifest_of(1), share.shards, 0, world.size());
  FarMemory far;
  LateStaging staging(far, 5 + 4 * static_cast<std::size_t>(world.rank()));
  const auto away = moved_away(share.shards, far, staging);
  const bool is_in_place = world.rank() == 1;
  const auto through = write(world, folder / "b", manifest_of(1), is_in_place ? share.shards : away,
                             0, world.size());
  expect_same_files(written.path, through.path);
}

TEST_F(StagingTest, LoadsWhatWasSavedByAnyCut) {
  save(world, folder, 10, 0);
  for (const Cut cut : {flat_share, column_share}) {
    for (const std::size_t slot : slot_sizes) {
      FarMemory far;
      LateStaging staging(far, slot);
      Share back = cut_of(cut);
      const auto away = moved_away(back.shards, far, staging);
      const auto found = search(away);
      ASSERT_TRUE(found) << all_of(problems);
      read(*found, away);
      EXPECT_EQ(staging.under_way(), 0U);
      require_saved_values(world, *found, away);
      bring_back(away, far, back.shards);
      EXPECT_EQ(wrong_values(back, model, 10), 0) << slot;
    }
  }
}

TEST_F(StagingTest, FillsInTheSearchWhatIsStoredContiguously) {
  save(world, folder, 10, 0);
  FarMemory far;
  LateStaging staging(far, 61);
  const auto away = moved_away(cut_of(flat_share).shards, far, staging);
  const auto found = search(away);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->filled.size(), away.size());
}

// The values filled by the search are hashed at their destination, not in transit.
TEST_F(StagingTest, ValuesThatDidNotArriveAreRefused) {
  save(world, folder, 10, 0);
  FarMemory far;
  LateStaging staging(far, 61);
  const auto away = moved_away(cut_of(flat_share).shards, far, staging);
  const auto found = search(away);
  ASSERT_TRUE(found) << all_of(problems);
  *far.values(away.front().arrays[1].values.data()) += 1;
  const std::string text =
      error_of(ExitCode::files, [&] { require_saved_values(world, *found, away); });
  EXPECT_TRUE(contains(text, "step_00000010: what was loaded has the hash")) << text;
}

TEST_F(StagingTest, LeavesArraysThatAreNotWanted) {
  save(world, folder, 10, 0);
  FarMemory far;
  LateStaging staging(far, 61);
  Share back = cut_of(column_share);
  auto away = moved_away(back.shards, far, staging);
  auto some = away;
  for (StateShard& shard : some) {
    clear(shard.staging, shard.arrays[1]);
    shard.arrays.erase(shard.arrays.begin() + 1);
  }
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  read(*found, some);
  bring_back(away, far, back.shards);
  std::size_t i = 0;
  for (const StateShard& shard : back.shards) {
    for (const float value : shard.arrays[1].values) ASSERT_EQ(value, 0) << shard.parameter;
    EXPECT_EQ(shard.arrays[0].values[0], filled(cut_of(column_share), model, 10).memory[i][0]);
    i += shard.arrays.size();
  }
}

TEST_F(StagingTest, WhatIsNowhereIsRefused) {
  save(world, folder, 10, 0);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  FarMemory far;
  LateStaging staging(far, 6);
  StateShard beyond{"ln_f.bias", {{40, 10}}, {{"master", far.take(10)}}, &staging};
  std::string text = error_of(ExitCode::files, [&] { read(*found, std::span(&beyond, 1)); });
  EXPECT_TRUE(contains(text, "holds no element 48 of ln_f.bias")) << text;
  beyond.arrays.front().values = far.take(9);
  text = error_of(ExitCode::other, [&] { read(*found, std::span(&beyond, 1)); });
  EXPECT_TRUE(contains(text, "room for 9 values")) << text;
}

TEST_F(StagingTest, WithoutRoomForAnElementOfEachArrayIsRefused) {
  FarMemory far;
  LateStaging staging(far, 2);
  const StateShard shard = moved_away(cut_of(flat_share).shards, far, staging).front();
  const auto text = error_of(ExitCode::other, [&] { hash_of(shard, 0); });
  EXPECT_TRUE(contains(text, "without room for 3 state arrays")) << text;
}

}  // namespace

}  // namespace kzero::checkpoint
