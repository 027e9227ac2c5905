// A full disk causes an Error on every rank and leaves no partial checkpoint. Earlier checkpoints
// are unchanged.
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <limits>
#include <optional>
#include <utility>

#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using DiskFull = CheckpointTest;

constexpr off_t unlimited = std::numeric_limits<off_t>::max();

/// While a DiskLimit exists, HDF5's writes beyond this offset in a file fail.
off_t disk_limit = unlimited;

class DiskLimit {
 public:
  explicit DiskLimit(off_t bytes) { disk_limit = bytes; }
  ~DiskLimit() { disk_limit = unlimited; }
  DiskLimit(const DiskLimit&) = delete;
  DiskLimit& operator=(const DiskLimit&) = delete;
};

void expect_only(const fs::path& folder, std::vector<std::string> names) {
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    found.push_back(entry.path().filename().string());
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, names);
}

/// Step 20 does not fit on one rank's disk, from its first byte to its last. Step 10 remains.
void expect_stops(const grid::Group& world, const fs::path& folder, int full, Index ranks_per_file,
                  int points) {
  save(world, folder, 10, 0, ranks_per_file);
  const std::string shard_file = shard_file_name(full / ranks_per_file);
  const auto shard_bytes = static_cast<off_t>(fs::file_size(folder / "step_00000010" / shard_file));
  const bool sets_up = full % ranks_per_file == 0;
  for (off_t bytes = 0; bytes < shard_bytes; bytes += shard_bytes / points + 1) {
    // The values of a rank that only writes them may be located before the limit.
    if (!sets_up && bytes > shard_bytes / 4) break;
    world.barrier();
    const std::string text = error_of(ExitCode::files, [&] {
      const DiskLimit limit(world.rank() == full ? bytes : unlimited);
      save(world, folder, 20, 0, ranks_per_file);
    });
    EXPECT_TRUE(contains(text, "step_00000020.") && contains(text, ".partial/" + shard_file))
        << text;
    EXPECT_TRUE(contains(text, "No space left on device")) << text;
    world.barrier();
    expect_only(folder, {"latest", "step_00000010"});
    world.barrier();
  }
}

TEST_F(DiskFull, OnOneRankStopsAllAtAnyPointOfTheShard) {
  expect_stops(world, folder, world.size() - 1, 1, 40 / world.size());
  save(world, folder, 20, 0);
  EXPECT_EQ(search()->manifest.step, 20);
}

TEST_F(DiskFull, OnOneRankOfASharedFileStopsAll) {
  for (const Index ranks_per_file : {2, world.size()}) {
    for (const int full : {0, world.size() - 1}) {
      expect_stops(world, folder, full, ranks_per_file, 5);
    }
  }
  save(world, folder, 20, 0, 2);
  EXPECT_EQ(search()->manifest.step, 20);
}

TEST_F(DiskFull, OfTheManifestStopsAllAtAnyPoint) {
  // With one value per rank, the manifest is the larger file.
  const std::vector<Parameter> model{{"tiny", {world.size()}}};
  const Share share = filled(flat_share(model, world.rank(), world.size()), model, 1);
  write(world, folder, manifest_at(10, model), share.shards, 0);
  const auto bytes_of_file = [&](const char* file) {
    return fs::file_size(folder / "step_00000010" / file);
  };
  const auto shard_bytes = bytes_of_file("shard_00000.h5");
  const auto manifest_bytes = bytes_of_file("manifest.h5");
  ASSERT_GT(manifest_bytes, shard_bytes);
  const auto stride = (manifest_bytes - shard_bytes) / 20 + 1;
  for (off_t bytes = static_cast<off_t>(shard_bytes); std::cmp_less(bytes, manifest_bytes);
       bytes += static_cast<off_t>(stride)) {
    world.barrier();
    const std::string text = error_of(ExitCode::files, [&] {
      const DiskLimit limit(bytes);
      write(world, folder, manifest_at(20, model), share.shards, 0);
    });
    EXPECT_TRUE(contains(text, "step_00000020.") && contains(text, ".partial/manifest.h5")) << text;
    world.barrier();
    expect_only(folder, {"latest", "step_00000010"});
  }
}

/// Unmounts the root's mount at the end of the test, including after failures.
class Mounted {
 public:
  explicit Mounted(fs::path folder) : folder_(std::move(folder)) {}
  ~Mounted() { umount2(folder_.c_str(), MNT_DETACH); }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;

 private:
  fs::path folder_;
};

TEST_F(DiskFull, OfASmallFileSystem) {
  std::optional<Mounted> mounted;
  on_root([&] {
    fs::create_directories(folder);
    if (mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=160k") == 0) mounted.emplace(folder);
  });
  if (world.broadcast(mounted ? "yes" : "no") == "no") {
    GTEST_SKIP() << "mounting a small tmpfs needs root";
  }
  Index saved = 0;
  const std::string text = error_of(ExitCode::files, [&] {
    for (Index step = 1; step < 20; ++step, ++saved) save(world, folder, step, 0, 1 + step % 2);
  });
  EXPECT_TRUE(contains(text, "No space left on device")) << text;
  EXPECT_TRUE(contains(text, folder.string())) << text;
  world.barrier();
  const auto found = search();
  EXPECT_EQ(found ? found->manifest.step : 0, saved);
  EXPECT_TRUE(problems.empty()) << all_of(problems);
  world.barrier();
}

/// Limits the size of the files that this process may write while the object exists.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() { setrlimit(RLIMIT_FSIZE, &before_); }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

TEST_F(DiskFull, AFileBeyondTheLimitOfTheProcessIsRefusedBeforeItIsWritten) {
  save(world, folder, 10, 0);
  const std::string text = error_of(ExitCode::files, [&] {
    const FileSizeLimit limit(70000);
    save(world, folder, 20, 0);
  });
  EXPECT_TRUE(contains(text, ".partial/shard_00000.h5")) << text;
  EXPECT_TRUE(contains(text, "files of 70000 bytes at most (ulimit -f)")) << text;
  EXPECT_EQ(search()->manifest.step, 10);
}

TEST_F(DiskFull, AFolderThatCannotBeMadeIsNamed) {
  on_root([&] { std::ofstream(folder) << "a file"; });
  const std::string text = error_of(ExitCode::files, [&] { save(world, folder, 1, 0); });
  EXPECT_TRUE(contains(text, folder.string())) << text;
}

}  // namespace

// These replace the C library's functions for the HDF5 library and for this entire program. They
// ignore files without a name, which are not on a disk.

bool refused(int file, off_t end) {
  struct stat status {};
  fstat(file, &status);
  return status.st_nlink > 0 && end > disk_limit;
}

extern "C" ssize_t pwrite(int file, const void* bytes, size_t count, off_t offset) {
  if (!refused(file, offset + static_cast<off_t>(count))) {
    return syscall(SYS_pwrite64, file, bytes, count, offset);
  }
  errno = ENOSPC;
  return -1;
}

extern "C" int posix_fallocate(int file, off_t offset, off_t count) {
  if (refused(file, offset + count)) return ENOSPC;
  return syscall(SYS_fallocate, file, 0, offset, count) == 0 ? 0 : errno;
}

}  // namespace kzero::checkpoint
