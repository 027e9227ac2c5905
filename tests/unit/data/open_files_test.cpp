#include "data/open_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <thread>

#include "token_files.hpp"

namespace kzero::data {
namespace {

namespace fs = std::filesystem;

class FewOpenFiles : public TokenFiles {
 protected:
  /// Opens files that contain their number in four digits.
  void open(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string file = write_text(fmt::format("f{}", i), fmt::format("{:04}", i));
      files_.push_back(std::make_unique<DataFile>(file, all_));
      struct stat status {};
      ASSERT_TRUE(files_.back()->open(status));
      EXPECT_EQ(status.st_size, 4);
    }
  }

  std::string text_of(std::size_t file) const {
    std::string text(4, ' ');
    EXPECT_EQ(files_[file]->read(std::as_writable_bytes(std::span(text)), 0), 4);
    return text;
  }

  /// The number of the folder's files that this process has open.
  int open_here() const {
    int count = 0;
    for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
      std::error_code gone;
      if (fs::read_symlink(entry, gone).string().starts_with(folder_.path().string())) ++count;
    }
    return count;
  }

  OpenFiles all_{3};
  std::vector<std::unique_ptr<DataFile>> files_;
};

TEST_F(FewOpenFiles, StayFewWhicheverIsRead) {
  open(10);
  EXPECT_EQ(open_here(), 3);
  for (int i = 0; i < 200; ++i) {
    const int file = i * i % 10;
    EXPECT_EQ(text_of(static_cast<std::size_t>(file)), fmt::format("{:04}", file));
    EXPECT_LE(open_here(), 3);
  }
  files_.clear();
  EXPECT_EQ(open_here(), 0);
}

TEST_F(FewOpenFiles, AreThoseReadLast) {
  open(4);  // closes the first
  text_of(1);
  text_of(0);
  fs::remove(path("f2"));  // already closed too
  fs::remove(path("f1"));
  EXPECT_EQ(text_of(1), "0001") << "it was still open";
  EXPECT_EQ(error_of([&] { text_of(2); }),
            path("f2") +
                ": cannot be opened again: No such file or directory; data files must stay in "
                "place while they are in use");
}

TEST_F(FewOpenFiles, AreReadByManyThreads) {
  open(10);
  std::atomic<int> wrong = 0;
  const auto look = [&](int seed) {
    for (int i = 0; i < 2000; ++i) {
      const int file = (i * 7 + seed * i * i) % 10;
      std::array<char, 4> text{};
      files_[file]->read(std::as_writable_bytes(std::span(text)), 0);
      if (std::string(text.data(), 4) != fmt::format("{:04}", file)) ++wrong;
    }
  };
  std::vector<std::thread> threads;
  for (int seed = 0; seed < 6; ++seed) threads.emplace_back(look, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  text_of(0);
  EXPECT_LE(open_here(), 3) << "all others were given back";
}

TEST_F(FewOpenFiles, AnotherFileInTheirPlaceIsRefused) {
  open(10);
  const auto age = [](const std::string& file) {
    const timespec times[2]{{.tv_sec = 7, .tv_nsec = 0}, {.tv_sec = 7, .tv_nsec = 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  };
  age(write_text("new", "4321"));
  fs::rename(path("new"), path("f0"));
  EXPECT_EQ(error_of([&] { text_of(0); }),
            path("f0") +
                ": is not the file that was opened at the start; data files must stay in place "
                "while they are in use");
  EXPECT_LE(open_here(), 3);
  age(path("f1"));
  EXPECT_EQ(text_of(1), "0001") << "touched, so that a scratch file system keeps it";
}

TEST_F(FewOpenFiles, LeaveRoomForOthersUnderATightLimit) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  OpenFiles many(1000);
  const rlimit tight{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<std::unique_ptr<DataFile>> files;
  for (int i = 0; i < 100; ++i) {
    files.push_back(std::make_unique<DataFile>(write_text(fmt::format("m{}", i), "x"), many));
    struct stat status {};
    EXPECT_TRUE(files.back()->open(status)) << i;
  }
  EXPECT_LE(open_here(), 20);
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(FewOpenFiles, LeaveTheLastDescriptorsToOthers) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  std::vector<int> taken{::open("/dev/null", O_RDONLY)};
  const int max = taken.front() + 40;  // more than half is for the rest of the program
  while (taken.back() < max - 15) taken.push_back(::open("/dev/null", O_RDONLY));
  OpenFiles many(1000);
  std::vector<std::string> paths;
  for (int i = 0; i < 100; ++i) paths.push_back(write_text(fmt::format("m{}", i), "x"));
  const rlimit tight{static_cast<rlim_t>(max), before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  std::vector<std::unique_ptr<DataFile>> files;
  int missing = 0;
  for (int i = 0; i < 100; ++i) {
    files.push_back(std::make_unique<DataFile>(paths[i], many));
    struct stat status {};
    missing += files.back()->open(status) ? 0 : 1;
    const int other = ::open("/dev/null", O_RDONLY);
    missing += other >= 0 ? 0 : 1;
    ::close(other);
  }
  ::setrlimit(RLIMIT_NOFILE, &before);
  for (const int one : taken) ::close(one);
  EXPECT_EQ(missing, 0);
}

}  // namespace
}  // namespace kzero::data
