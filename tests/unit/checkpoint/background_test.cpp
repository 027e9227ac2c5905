// Checkpoints are written and removed in parallel with the caller.
#include <fcntl.h>
#include <stdio.h>

#include <future>

#include "checkpoint/folder/retention.hpp"
#include "unit/checkpoint/support.hpp"

namespace {

/// A rename of this path waits until the gate is open.
std::string gated_path;
std::shared_future<void> gate;

}  // namespace

/// Replaces the C library's function in the entire program.
extern "C" int rename(const char* from, const char* to) {
  if (!gated_path.empty() && gated_path == from) gate.wait();
  return ::renameat(AT_FDCWD, from, AT_FDCWD, to);
}

namespace kzero::checkpoint {

namespace {

class Background : public CheckpointTest {
 protected:
  /// Starts a checkpoint of the small model's state at `step`.
  BackgroundWrite begin(Index step, Index keep) {
    share = filled(flat_share(model, world.rank(), world.size()), model, step);
    return {world, folder, manifest_at(step, model), share.shards, keep};
  }

  const std::vector<Parameter> model = small_model();
  Share share;
};

TEST_F(Background, LeavesWhatIsToBeKept) {
  for (const Index step : {10, 20, 30, 40}) {
    BackgroundWrite under_way = begin(step, 2);
    const Written written = under_way.finish();
    EXPECT_TRUE(fs::exists(written.path / manifest_name));
    EXPECT_EQ(all_of(under_way.tidied()), "");
    world.barrier();
    EXPECT_EQ(fs::exists(folder / folder_name(step - 10)), step > 10);
    EXPECT_FALSE(fs::exists(folder / folder_name(step - 20)));
    world.barrier();
  }
  Share back = flat_share(model, world.rank(), world.size());
  const auto found = search(back.shards);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->manifest.step, 40);
  EXPECT_EQ(wrong_values(back, model, 40), 0);
}

TEST_F(Background, DoesNotWaitForTheRemoval) {
  save(world, folder, 1, 0);
  std::promise<void> open;
  gate = open.get_future().share();
  gated_path = (folder / folder_name(1)).string();
  BackgroundWrite under_way = begin(10, 1);
  const Written written = under_way.finish();
  EXPECT_TRUE(fs::exists(written.path / manifest_name));
  EXPECT_TRUE(fs::exists(gated_path));
  world.barrier();
  open.set_value();
  EXPECT_EQ(all_of(under_way.tidied()), "");
  world.barrier();
  EXPECT_FALSE(fs::exists(gated_path));
  gated_path.clear();
}

TEST_F(Background, SaysWhatCouldNotBeTidied) {
  on_root([&] { fs::create_directories(folder / "latest"); });
  BackgroundWrite under_way = begin(10, 1);
  const Written written = under_way.finish();
  EXPECT_TRUE(written.problems.empty());
  const std::string text = all_of(under_way.tidied());
  EXPECT_EQ(contains(text, "latest"), world.is_root()) << text;
  ASSERT_TRUE(search());
}

}  // namespace

}  // namespace kzero::checkpoint
