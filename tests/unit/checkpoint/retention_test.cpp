// The checkpoints that are kept, and the remains of interrupted writes.
#include "checkpoint/folder/retention.hpp"

#include <set>

#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using Names = std::set<std::string>;

class Retention : public CheckpointTest {
 protected:
  /// Returns all names in the folder. No rank continues until every rank has read them.
  Names names() const {
    world.barrier();
    Names found;
    for (const auto& entry : fs::directory_iterator(folder)) {
      found.insert(entry.path().filename().string());
    }
    world.barrier();
    return found;
  }
};

TEST_F(Retention, KeepsTheNewest) {
  for (const Index step : {10, 20, 30, 40}) save(world, folder, step, 2);
  EXPECT_EQ(names(), (Names{"latest", "step_00000030", "step_00000040"}));
  save(world, folder, 50, 0);
  EXPECT_EQ(names(), (Names{"latest", "step_00000030", "step_00000040", "step_00000050"}));
  save(world, folder, 60, 1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000060"}));
  std::ifstream latest(folder / "latest");
  std::string name;
  latest >> name;
  EXPECT_EQ(name, "step_00000060");
}

TEST_F(Retention, MultiplesOfKeepEveryStay) {
  // The checkpoint of step 40 waited until step 41.
  for (const Index step : {10, 20, 30, 41, 50, 60, 70}) save(world, folder, step, {1, 20});
  EXPECT_EQ(names(),
            (Names{"latest", "step_00000020", "step_00000041", "step_00000060", "step_00000070"}));
  save(world, folder, 85, {2, 40});
  EXPECT_EQ(names(), (Names{"latest", "step_00000041", "step_00000070", "step_00000085"}));
  on_root([&] { EXPECT_TRUE(retain(folder, 85, 1).empty()); });
  EXPECT_EQ(names(), (Names{"latest", "step_00000085"}));
}

TEST_F(Retention, DamagedOnesDoNotCountAndLaterOnesStay) {
  for (const Index step : {10, 20, 90}) save(world, folder, step, 0);
  on_root([&] { fs::resize_file(folder / "step_00000020" / "shard_00000.h5", 100); });
  save(world, folder, 30, 2);
  EXPECT_EQ(names(),
            (Names{"latest", "step_00000010", "step_00000020", "step_00000030", "step_00000090"}));
  save(world, folder, 40, 1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000040", "step_00000090"}));
}

TEST_F(Retention, TheSameStepIsReplaced) {
  save(world, folder, 10, 0);
  const auto model = small_model();
  const Share share = filled(flat_share(model, world.rank(), world.size()), model, 99);
  write(world, folder, manifest_at(10, model), share.shards, 0);
  EXPECT_EQ(names(), (Names{"latest", "step_00000010"}));
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  Share back = flat_share(model, 0, 1);
  read(*found, back.shards);
  EXPECT_EQ(wrong_values(back, model, 99), 0);
}

TEST_F(Retention, AnInterruptedWriteIsNotSeenAndRemovedByTheNextRun) {
  save(world, folder, 10, 0);
  on_root([&] {
    fs::copy(folder / "step_00000010", folder / "step_00000020.0badcafe.partial");
    fs::copy(folder / "step_00000010", folder / "step_00000030.partial");
    fs::remove(folder / "step_00000030.partial" / "manifest.h5");
  });
  const auto found = search();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.step, 10);
  EXPECT_TRUE(problems.empty()) << all_of(problems);
  save(world, folder, 20, 0);
  const Names all{"latest", "step_00000010", "step_00000020"};
  Names with_others = all;
  with_others.insert({"step_00000020.0badcafe.partial", "step_00000030.partial"});
  EXPECT_EQ(names(), with_others) << "a write leaves alone what is not its own";
  on_root([&] { remove_stale(folder); });
  EXPECT_EQ(names(), all);
}

TEST_F(Retention, SkippedStepsPushOutNoGoodCheckpoint) {
  for (const Index step : {10, 20}) save(world, folder, step, 2);
  for (const Index step : {30, 40, 50}) save(world, folder, step, 2, 1, step - 25);
  EXPECT_EQ(names(), (Names{"latest", "step_00000010", "step_00000020", "step_00000030",
                            "step_00000040", "step_00000050"}));
  save(world, folder, 60, 2);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000030", "step_00000040",
                            "step_00000050", "step_00000060"}));
  save(world, folder, 70, 2);
  EXPECT_EQ(names(), (Names{"latest", "step_00000060", "step_00000070"}));
  save(world, folder, 80, 1, 1, 3);
  EXPECT_EQ(names(), (Names{"latest", "step_00000070", "step_00000080"}));
}

// The record of a training whose loss was last within its range in step `sane_step`, from 0.
LossRecord losses_until(Index sane_step) {
  return {.last = 7.5,
          .included = 3,
          .mean = 3,
          .change = 0.1,
          .lowest = 3,
          .counted = 1,
          .sane_step = sane_step};
}

void save_with_losses(const grid::Group& world, const fs::path& folder, Index step, Keep keep,
                      Index sane_step) {
  const auto model = small_model();
  const Share share = filled(flat_share(model, world.rank(), world.size()), model, step);
  Manifest manifest = manifest_at(step, model);
  manifest.skipped_in_row = 0;
  manifest.loss = losses_until(sane_step);
  write(world, folder, manifest, share.shards, keep);
}

TEST_F(Retention, LossesBeyondTheirRangePushOutNoSaneCheckpoint) {
  for (const Index step : {10, 20, 21}) save_with_losses(world, folder, step, 2, step - 1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000021"}));
  // Step 21 shows that the update of step 20 broke the weights of checkpoint 21.
  for (const Index step : {22, 23, 24, 25}) save_with_losses(world, folder, step, 2, 20);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000024", "step_00000025"}));
  EXPECT_EQ(newest_sane(folder, 25, 20), folder / "step_00000020");
  // The loss recovers. A checkpoint with a recovered loss counts once a later step has shown that
  // loss.
  save_with_losses(world, folder, 30, 2, 29);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000025", "step_00000030"}));
  save_with_losses(world, folder, 40, 2, 39);
  EXPECT_EQ(names(), (Names{"latest", "step_00000030", "step_00000040"}));
  EXPECT_EQ(newest_sane(folder, 40, 39), folder / "step_00000030");
  EXPECT_EQ(newest_sane(folder, 40, 12), std::nullopt);
  EXPECT_EQ(newest_sane(folder, 29, 39), std::nullopt);
}

TEST_F(Retention, MultiplesOfKeepEveryStayWithoutASaneOne) {
  // The loss has never been within its range.
  for (const Index step : {20, 30, 40, 50}) save_with_losses(world, folder, step, {1, 20}, -1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000040", "step_00000050"}));
}

TEST_F(Retention, OneThatIsKeptIsNotTheOnlySaneOne) {
  for (const Index step : {10, 20, 30}) save_with_losses(world, folder, step, 1, step - 1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_00000030"}));
  // Makes room before the next write. Step 30 has been confirmed by now.
  on_root([&] { EXPECT_TRUE(retain(folder, 39, 1, 39).empty()); });
  EXPECT_EQ(names(), (Names{"latest", "step_00000030"}));
}

TEST_F(Retention, TheRecordOfLossesComesBackAsGiven) {
  save_with_losses(world, folder, 10, 0, 7);
  const auto found = search();
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->manifest.loss, losses_until(7));
  EXPECT_FALSE(is_sane(found->manifest, every_step));
}

TEST_F(Retention, ANameIsThatOfTheManifest) {
  for (const Index step : {10, 20}) save(world, folder, step, 0);
  on_root([&] { fs::rename(folder / "step_00000020", folder / "step_00000099"); });
  const auto found = search();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.step, 10);
  EXPECT_TRUE(contains(all_of(problems), "step_00000099: its manifest is that of step 20"));
  world.barrier();
  on_root([&] { fs::rename(folder / "step_00000099", folder / "best"); });
  EXPECT_EQ(newest(world, folder / "best", its_own, problems)->manifest.step, 20)
      << "any other name is good";
  EXPECT_TRUE(contains(
      error_of(ExitCode::usage, [&] { require_folder_of_checkpoints(folder / "best" / ""); }),
      "is a checkpoint itself"));
  EXPECT_NO_THROW(require_folder_of_checkpoints(folder));
}

TEST_F(Retention, AReplacementCutShortLosesNothing) {
  save(world, folder, 10, 0);
  save(world, folder, 20, 0);
  // The state between the two renames that replace step 20.
  on_root([&] { fs::rename(folder / "step_00000020", folder / "step_00000020.replaced"); });
  const auto found = search();
  ASSERT_TRUE(found);
  EXPECT_EQ(found->manifest.step, 20);
  world.barrier();
  on_root([&] { remove_stale(folder); });
  save(world, folder, 30, 0);
  EXPECT_EQ(names(), (Names{"latest", "step_00000010", "step_00000020", "step_00000030"}));
  // The state after both renames.
  on_root([&] { fs::copy(folder / "step_00000020", folder / "step_00000020.replaced"); });
  on_root([&] { remove_stale(folder); });
  save(world, folder, 40, 0);
  EXPECT_EQ(names(),
            (Names{"latest", "step_00000010", "step_00000020", "step_00000030", "step_00000040"}));
}

TEST_F(Retention, OnlyItsOwnNamesAreTouched) {
  on_root([&] {
    for (const char* name : {"step_x", "step_1x", "mine.partial", "step_-0000004.partial"}) {
      fs::create_directories(folder / name);
    }
    std::ofstream(folder / "notes.txt") << "keep";
    remove_stale(folder);
  });
  save(world, folder, 10, 1);
  save(world, folder, 20, 1);
  EXPECT_EQ(names(), (Names{"latest", "step_00000020", "step_x", "step_1x", "mine.partial",
                            "step_-0000004.partial", "notes.txt"}));
}

}  // namespace

}  // namespace kzero::checkpoint
