// The values that the checkpoint search fills are correct and are not read again.
#include "checkpoint/format/wanted_shards.hpp"

#include "checkpoint/format/parameter_hash.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

class TargetsTest : public CheckpointTest {
 protected:
  Share mine() const { return flat_share(model, world.rank(), world.size()); }

  void remove_shards(const Found& found) const {
    world.barrier();
    on_root([&] {
      for (const ShardFile& shard_file : found.manifest.shard_files)
        fs::remove(found.path / shard_file.file);
    });
  }

  const std::vector<Parameter> model = small_model();
};

TEST_F(TargetsTest, OnTheSameGridNothingIsReadAfterTheSearch) {
  for (const Index ranks_per_file : {1, world.size()}) {
    save(world, folder, 10 + ranks_per_file, 0, ranks_per_file);
    Share back = mine();
    const auto found = search(back.shards);
    ASSERT_TRUE(found) << all_of(problems);
    EXPECT_EQ(found->filled.size(), back.shards.size()) << ranks_per_file;
    remove_shards(*found);
    read(*found, back.shards);
    EXPECT_EQ(wrong_values(back, model, 10 + ranks_per_file), 0) << ranks_per_file;
  }
}

TEST_F(TargetsTest, WithoutTargetsEverythingIsReadAfterTheSearch) {
  save(world, folder, 10, 0);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_TRUE(found->filled.empty());
  remove_shards(*found);
  Share back = mine();
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { read(*found, back.shards); }), "shard_"));
}

TEST_F(TargetsTest, PiecesOfAnotherCutAreReadAfterTheSearch) {
  save(world, folder, 10, 0);
  for (const Index ranks : {1, 2, 5}) {
    const Index rank = world.rank() % ranks;
    for (Share back : {column_share(model, rank, ranks), flat_share(model, rank, ranks)}) {
      const auto found = search(back.shards);
      ASSERT_TRUE(found) << all_of(problems);
      read(*found, back.shards);
      EXPECT_EQ(wrong_values(back, model, 10), 0) << rank << " of " << ranks;
    }
  }
  Share columns = column_share(model, world.rank(), world.size());
  const auto found = search(columns.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_TRUE(std::ranges::none_of(
      found->filled, [](const Filled& filled) { return filled.shard.parameter == "wte.weight"; }));
}

TEST_F(TargetsTest, PiecesOfManyBlocksAreFilledWithTheirHash) {
  const std::vector<Parameter> large{{"wte.weight", {331, 1009}}, {"wpe.weight", {211, 640}}};
  Index step = 0;
  for (const auto cut : {flat_share, column_share}) {
    const Share saved =
        filled(cut(large, world.rank(), world.size(), three_arrays()), large, ++step);
    write(world, folder, manifest_at(step, large), saved.shards, 0);
    Share back = cut(large, world.rank(), world.size(), three_arrays());
    const auto found = search(back.shards);
    ASSERT_TRUE(found) << all_of(problems);
    EXPECT_EQ(found->filled.size(), back.shards.size());
    EXPECT_EQ(wrong_values(back, large, step), 0);
    const Positions positions = positions_of(large);
    for (const auto& [shard, hash] : found->filled) {
      EXPECT_EQ(hash, hash_of(shard, positions.at(shard.parameter))) << shard.parameter;
    }
    require_saved_values(world, *found, back.shards);
  }
}

TEST_F(TargetsTest, FilledPiecesThatAreNotWhatWasSavedAreRefused) {
  save(world, folder, 10, 0);
  on_root([&] {
    Manifest manifest = read_manifest(folder / "step_00000010");
    ++manifest.parameter_hash;
    write_manifest(folder / "step_00000010", manifest);
  });
  Share back = mine();
  const auto found = search(back.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->filled.size(), back.shards.size());
  const std::string text =
      error_of(ExitCode::files, [&] { require_saved_values(world, *found, back.shards); });
  EXPECT_TRUE(contains(text, "step_00000010: what was loaded has the hash")) << text;
}

TEST_F(TargetsTest, AFileThatEndsInAWantedPieceIsPassedOver) {
  save(world, folder, 10, 0);
  save(world, folder, 20, 0);
  const fs::path newer = folder / "step_00000020";
  const ShardFile last = read_manifest(newer).shard_files.back();
  world.barrier();
  on_root([&] { fs::resize_file(newer / last.file, last.shards.back().offsets.back() + 5); });
  Share back = mine();
  const auto found = search(back.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->manifest.step, 10);
  EXPECT_TRUE(contains(all_of(problems), "step_00000020/" + last.file + ": dataset ln_f.bias"));
  read(*found, back.shards);
  EXPECT_EQ(wrong_values(back, model, 10), 0);
  require_saved_values(world, *found, back.shards);
}

TEST_F(TargetsTest, OtherMemoryThanTheSearchFilledIsRead) {
  save(world, folder, 10, 0);
  const Share first = mine();
  const auto found = search(first.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_FALSE(found->filled.empty());
  Share second = mine();
  read(*found, second.shards);
  EXPECT_EQ(wrong_values(second, model, 10), 0);
}

TEST_F(TargetsTest, APieceWithAnEmptyArrayIsReadAfterTheSearchAndOneOfAnotherSizeRefused) {
  save(world, folder, 10, 0);
  Share back = mine();
  StateShard shard = back.shards.front();
  for (float& value : shard.arrays[2].values) value = -7;
  shard.arrays[2].values = {};
  auto found = search(std::span(&shard, 1));
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_TRUE(found->filled.empty());
  read(*found, std::span(&shard, 1));
  EXPECT_EQ(back.shards.front().arrays[2].values[0], -7);
  EXPECT_NE(shard.arrays[1].values[0], -1);

  shard.arrays[1].values = shard.arrays[1].values.first(shard.arrays[1].values.size() - 1);
  found = search(std::span(&shard, 1));
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_TRUE(found->filled.empty());
  const auto text = error_of(ExitCode::other, [&] { read(*found, std::span(&shard, 1)); });
  EXPECT_TRUE(contains(text, "room for")) << text;
}

TEST_F(TargetsTest, ADamagedCheckpointThatWasReadLeavesNoTrace) {
  // The older checkpoint is partitioned differently, so its search fills nothing of the large
  // matrices.
  const Share columns = filled(column_share(model, world.rank(), world.size()), model, 10);
  write(world, folder, manifest_at(10, model), columns.shards, 0);
  save(world, folder, 20, 0);
  const fs::path newer = folder / "step_00000020";
  const Manifest manifest = read_manifest(newer);
  const ShardFile& last = manifest.shard_files.back();
  on_root([&] { flip_byte(newer / last.file, last.shards.back().offsets.back() + 1); });

  Share back = mine();
  const auto found = search(back.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->manifest.step, 10);
  EXPECT_TRUE(contains(all_of(problems), "step_00000020/" + last.file + ": dataset ln_f.bias"));
  EXPECT_EQ(back.shards.front().values("master")[0],
            filled(mine(), model, 20).shards.front().values("master")[0]);  // it had been read
  read(*found, back.shards);
  EXPECT_EQ(wrong_values(back, model, 10), 0);
}

TEST_F(TargetsTest, ACandidateWhoseManifestAloneIsGoodLeavesNoTrace) {
  save(world, folder, 10, 0);
  save(world, folder, 20, 0);
  on_root([&] { fs::remove(folder / "step_00000020" / "shard_00000.h5"); });
  Share back = mine();
  const auto found = search(back.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->filled.size(), back.shards.size());
  remove_shards(*found);
  read(*found, back.shards);
  EXPECT_EQ(wrong_values(back, model, 10), 0);
}

}  // namespace

}  // namespace kzero::checkpoint
