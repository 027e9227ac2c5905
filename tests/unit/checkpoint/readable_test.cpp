// Other readers of the files: h5py, h5dump, and people with `kzero inspect`.
#include <cstdlib>

#include "checkpoint/inspect.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using Readable = CheckpointTest;

int run(const std::string& command) { return std::system(command.c_str()); }

/// A Python with h5py. Empty if there is none.
std::string python_with_h5py() {
  for (const char* python : {"python3", "/usr/bin/python3"}) {
    if (run(std::string(python) + " -c 'import h5py' 2>/dev/null") == 0) return python;
  }
  return "";
}

TEST_F(Readable, ByH5py) {
  const int files = (world.size() + 1) / 2;
  const Written written = save(world, folder, 7, 0, 2);
  if (!world.is_root()) return;
  const std::string python = python_with_h5py();
  if (python.empty()) GTEST_SKIP() << "no Python with h5py here";
  const std::string script =
      (fs::path(KZERO_TEST_DATA) / "../unit/checkpoint/read_with_h5py.py").string();
  EXPECT_EQ(run(fmt::format("{} '{}' '{}' {} {}", python, script, written.path.string(),
                            world.size(), files)),
            0);
}

TEST_F(Readable, ByH5dump) {
  const Written written = save(world, folder, 7, 0);
  if (!world.is_root()) return;
  if (run("h5dump --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "no h5dump here";
  const auto output = folder / "dump.txt";
  for (const char* file : {"shard_00000.h5", "manifest.h5"}) {
    ASSERT_EQ(
        run(fmt::format("h5dump '{}' > '{}'", (written.path / file).string(), output.string())), 0);
    std::ifstream stream(output);
    const std::string text{std::istreambuf_iterator<char>(stream), {}};
    const bool shard_file = std::string(file) != "manifest.h5";
    EXPECT_TRUE(contains(text, shard_file ? "GROUP \"wte.weight\"" : "ATTRIBUTE \"samples\""))
        << file;
    EXPECT_TRUE(contains(text, shard_file ? "DATASET \"second_moment\"" : "h.0.attn.c_attn.weight"))
        << file;
  }
}

TEST_F(Readable, ByPeople) {
  save(world, folder, 7, 0);
  for (const fs::path& path : {folder, folder / "step_00000007"}) {
    const std::string text = describe(path, its_own),
                      with_tensors = describe(path, its_own, Extent::tensors);
    for (const char* part :
         {"7 steps", "7000 tokens", "stage 0", "bf16", "5411 in 5 tensors", "untied"}) {
      EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
    }
    EXPECT_EQ(with_tensors.find(text), 0U) << with_tensors;
    for (const char* part : {"wte.weight [101, 48]", "shard_00000.h5"}) {
      EXPECT_FALSE(contains(text, part)) << part << "\n" << text;
      EXPECT_TRUE(contains(with_tensors, part)) << part << "\n" << with_tensors;
    }
    EXPECT_TRUE(verify(path, its_own).empty());
  }
  const auto nothing = folder / "nothing";
  EXPECT_TRUE(
      contains(error_of(ExitCode::files, [&] { describe(nothing, its_own); }), nothing.string()));
  error_of(ExitCode::files, [&] { verify(nothing, its_own); });
}

}  // namespace

}  // namespace kzero::checkpoint
