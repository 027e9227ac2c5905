// A file gets its name when it is complete. Until then no existing file is changed.
#include "storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <string>

#include "storage/files.hpp"
#include "support/error_text.hpp"
#include "support/stored_file.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::storage {

namespace {

namespace fs = std::filesystem;
using tests::contains;
using tests::error_of;
using tests::store;

class AtomicFileTest : public testing::Test {
 protected:
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path();
  fs::path path = folder / "out";
  fs::path partial = folder / "out.partial";

  void write(const std::string& text) const {
    AtomicFile file(path);
    file.append(std::as_bytes(std::span(text)));
    file.finish();
  }
  std::string text() const {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

TEST_F(AtomicFileTest, TheOldFileStaysUntilTheNewOneIsComplete) {
  store(path, "old");
  {
    AtomicFile file(path);
    file.append(std::as_bytes(std::span("new", 3)));
    EXPECT_EQ(text(), "old");
  }
  EXPECT_EQ(text(), "old");
  EXPECT_FALSE(fs::exists(partial));
  write("new");
  EXPECT_EQ(text(), "new");
  EXPECT_FALSE(fs::exists(partial));
}

TEST_F(AtomicFileTest, WhatAKilledProcessLeftIsReplaced) {
  store(partial, "a longer text that was never finished");
  write("new");
  EXPECT_EQ(text(), "new");
}

TEST_F(AtomicFileTest, AnotherProcessesFileIsLeftAlone) {
  const int other = ::open(partial.c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_EQ(::flock(other, LOCK_EX | LOCK_NB), 0);
  ASSERT_EQ(::write(other, "theirs", 6), 6);
  const auto problem = error_of(ExitCode::files, [&] { AtomicFile file(path); });
  EXPECT_TRUE(contains(problem, "out.partial: another process is writing it")) << problem;
  EXPECT_EQ(fs::file_size(partial), 6U);
  ::close(other);
  write("new");
  EXPECT_EQ(text(), "new");
}

/// Where everybody may write, somebody else can make the file first.
TEST_F(AtomicFileTest, NobodyElseHasTheNewFileOpen) {
  const int other = ::open(partial.c_str(), O_RDWR | O_CREAT, 0666);
  write("new");
  ASSERT_EQ(::pwrite(other, "bad", 3, 0), 3);
  ::close(other);
  EXPECT_EQ(text(), "new");
  write_durably(path, "newer");
  EXPECT_EQ(text(), "newer");
}

/// Each way to write a file must refuse what is in the way, and leave it as it is.
class InTheWay : public AtomicFileTest {
 protected:
  void expect_refusal(const std::string& reason) const {
    for (const auto& problem : {error_of(ExitCode::files, [&] { AtomicFile file(path); }),
                                error_of(ExitCode::files, [&] { write_durably(path, "new"); }),
                                error_of(ExitCode::files, [&] { OutputFile file(partial); })})
      EXPECT_TRUE(contains(problem, "out.partial: is in the way; " + reason)) << problem;
    EXPECT_FALSE(fs::exists(path));
  }
};

TEST_F(InTheWay, AHardLinkToAnotherFile) {
  store(folder / "precious", "precious");
  fs::create_hard_link(folder / "precious", partial);
  expect_refusal("its content has 2 names (hard links)");
  EXPECT_EQ(fs::file_size(folder / "precious"), 8U);
}

TEST_F(InTheWay, AFileOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can make a file of another user";
  store(partial, "theirs");
  ASSERT_EQ(::chown(partial.c_str(), 12345, 12345), 0);
  expect_refusal("it belongs to user 12345");
  EXPECT_EQ(fs::file_size(partial), 6U);
}

TEST_F(InTheWay, APipe) {
  ASSERT_EQ(::mkfifo(partial.c_str(), 0600), 0);
  expect_refusal("it is not a file");
}

TEST_F(InTheWay, AFolder) {
  fs::create_directory(partial);
  expect_refusal("it is not a file");
}

TEST_F(AtomicFileTest, ALinkIsReplacedAndNotFollowed) {
  for (const bool is_durable : {false, true}) {
    store(folder / "precious", "precious");
    fs::create_symlink(folder / "precious", partial);
    if (is_durable) {
      write_durably(path, "new");
    } else {
      write("new");
    }
    EXPECT_EQ(text(), "new");
    EXPECT_FALSE(fs::is_symlink(path));
    EXPECT_EQ(fs::file_size(folder / "precious"), 8U);
  }
}

}  // namespace

}  // namespace kzero::storage
