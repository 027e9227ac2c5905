// Any damage to the files of the newest checkpoint is reported, and the previous one is used.
#include <functional>

#include "checkpoint/inspect.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

class Damage : public CheckpointTest {
 protected:
  void save_two() {
    save(world, folder, 10, 0);
    save(world, folder, 20, 0);
  }
  fs::path newer() const { return folder / "step_00000020"; }

  static void set_format(const fs::path& checkpoint, int version) {
    std::fstream file(checkpoint / manifest_name, std::ios::in | std::ios::out | std::ios::binary);
    file << fmt::format("kzero checkpoint manifest\nformat {}\n", version);
  }

  /// Expects that step 10 is found and that the message names all the parts.
  void expect_fallback(const std::vector<std::string>& parts) {
    world.barrier();
    const auto found = search();
    ASSERT_TRUE(found);
    EXPECT_EQ(found->manifest.step, 10);
    const std::string text = all_of(problems);
    for (const std::string& part : parts) EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    const auto model = small_model();
    Share back = flat_share(model, world.rank(), world.size());
    read(*found, back.shards);
    EXPECT_EQ(wrong_values(back, model, 10), 0);
  }
};

TEST_F(Damage, AFlippedByteNamesFileAndDataset) {
  save_two();
  const Manifest manifest = read_manifest(newer());
  const StoredShard& shard = manifest.shard_files[0].shards[0];
  on_root([&] { flip_byte(newer() / "shard_00000.h5", shard.offsets[1] + 5); });
  expect_fallback({"step_00000020/shard_00000.h5: dataset wte.weight/first_moment is damaged"});
  EXPECT_EQ(problems.size(), 1U);
  const auto same = verify(folder, its_own);
  EXPECT_EQ(same, problems);
}

TEST_F(Damage, AFlippedByteAnywhereIsFound) {
  save_two();
  const auto last = fmt::format("shard_{:05}.h5", world.size() - 1);
  const auto bytes = static_cast<Index>(fs::file_size(newer() / last));
  for (Index position = 0; position < bytes; position += bytes / 5 + 1) {
    on_root([&] { flip_byte(newer() / last, position); });
    expect_fallback({"step_00000020/" + last, "damaged"});
    world.barrier();
    on_root([&] { flip_byte(newer() / last, position); });
  }
  EXPECT_EQ(search()->manifest.step, 20);
}

TEST_F(Damage, AnyByteOfTheManifestIsFound) {
  save_two();
  const auto path = newer() / "manifest.h5";
  const auto bytes = static_cast<Index>(fs::file_size(path));
  for (Index position = 0; position < bytes;
       position += (position < 600 ? 37 : 997) * world.size()) {
    on_root([&] { flip_byte(path, position); });
    expect_fallback({"step_00000020/manifest.h5"});
    world.barrier();
    on_root([&] { flip_byte(path, position); });
  }
  EXPECT_EQ(search()->manifest.step, 20);
}

TEST_F(Damage, TruncatedMissingAndForeignFilesAreNamed) {
  struct Case {
    std::function<void(const fs::path&)> harm;
    std::vector<std::string> parts;
  };
  const auto shard_file = fmt::format("shard_{:05}.h5", world.size() - 1);
  const std::vector<Case> cases{
      {[&](const fs::path& p) {
         fs::resize_file(p / shard_file, fs::file_size(p / shard_file) - 1);
       },
       {shard_file, "its manifest says"}},
      {[&](const fs::path& p) { fs::resize_file(p / shard_file, 0); }, {shard_file, "has 0 bytes"}},
      {[&](const fs::path& p) { fs::remove(p / shard_file); }, {shard_file, "cannot be opened"}},
      {[](const fs::path& p) { fs::remove(p / "manifest.h5"); }, {"manifest.h5: cannot be opened"}},
      {[](const fs::path& p) { fs::resize_file(p / "manifest.h5", 511); },
       {"manifest.h5: is not the manifest of a checkpoint, or is damaged"}},
      {[](const fs::path& p) { fs::resize_file(p / "manifest.h5", 700); },
       {"manifest.h5: is damaged: its 700 bytes"}},
      {[](const fs::path& p) { std::ofstream(p / "manifest.h5") << std::string(5000, 'x'); },
       {"manifest.h5: is not the manifest"}},
      {[](const fs::path& p) { set_format(p, 2); },
       {"manifest.h5: is of format version 2; this program reads version 3"}}};
  for (const Case& c : cases) {
    save_two();
    on_root([&] { c.harm(newer()); });
    expect_fallback(c.parts);
    world.barrier();
  }
}

TEST_F(Damage, NothingGoodIsAnErrorWithEveryReason) {
  save_two();
  on_root([&] {
    fs::remove(folder / "step_00000010" / "shard_00000.h5");
    fs::remove(newer() / "manifest.h5");
  });
  EXPECT_FALSE(search());
  EXPECT_EQ(problems.size(), 2U) << all_of(problems);
  const std::string text = error_of(ExitCode::files, [&] {
    std::vector<std::string> reasons;
    open(world, folder, its_own, reasons);
  });
  EXPECT_TRUE(contains(text, "step_00000010/shard_00000.h5")) << text;
  EXPECT_TRUE(contains(text, "step_00000020/manifest.h5")) << text;
}

TEST_F(Damage, CheckpointsOfAnotherFormatAreRefused) {
  constexpr const char* names[] = {"step_00000010", "step_00000020"};
  for (const int other : {2, 4}) {
    save_two();
    on_root([&] {
      for (const char* name : names) set_format(folder / name, other);
    });
    const std::string text = error_of(ExitCode::files, [&] {
      std::vector<std::string> reasons;
      open(world, folder, its_own, reasons);
    });
    const auto reason = fmt::format("is of format version {}; this program reads version 3", other);
    for (const char* name : names)
      EXPECT_TRUE(contains(text, fmt::format("{}/manifest.h5: {}", name, reason))) << text;
    world.barrier();
  }
}

TEST_F(Damage, AFolderThatDoesNotExistIsAFreshStart) {
  EXPECT_FALSE(search());
  EXPECT_TRUE(problems.empty());
}

TEST_F(Damage, OneCheckpointCanBeNamedItself) {
  save_two();
  std::vector<std::string> reasons;
  EXPECT_EQ(open(world, folder / "step_00000010", its_own, reasons).manifest.step, 10);
}

}  // namespace

}  // namespace kzero::checkpoint
