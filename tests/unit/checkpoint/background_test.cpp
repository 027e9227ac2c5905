// Writing and removing beside the caller.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "checkpoint/retention.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

class Background : public CheckpointTest {
 protected:
  /// Begins a checkpoint of the small model's state at `step`.
  BackgroundWrite begin(Index step, Index keep) {
    share = filled(flat_share(model, world.rank(), world.size()), model, step);
    return {world, folder, manifest_at(step, model), share.pieces, keep};
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
  const auto found = search(back.pieces);
  ASSERT_TRUE(found) << all_of(problems);
  EXPECT_EQ(found->manifest.step, 40);
  EXPECT_EQ(wrong_values(back, model, 40), 0);
}

TEST_F(Background, DoesNotWaitForTheRemoval) {
  // Whoever looks into this one waits until somebody writes to its manifest.
  const fs::path slow = folder / "step_00000001" / manifest_name;
  on_root([&] {
    fs::create_directories(slow.parent_path());
    ASSERT_EQ(::mkfifo(slow.c_str(), 0600), 0);
  });
  BackgroundWrite under_way = begin(10, 1);
  const Written written = under_way.finish();
  EXPECT_TRUE(fs::exists(written.path / manifest_name));
  on_root([&] { ::close(::open(slow.c_str(), O_WRONLY | O_CLOEXEC)); });
  EXPECT_EQ(all_of(under_way.tidied()), "");
  EXPECT_TRUE(fs::exists(slow)) << "it is no checkpoint, so nobody's to remove";
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
