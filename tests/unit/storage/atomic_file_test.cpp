// A file gets its name when it is complete. Until then no existing file is changed.
#include "storage/atomic_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <fstream>
#include <span>
#include <string>

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

TEST_F(AtomicFileTest, LinksAndFoldersInTheWayAreErrors) {
  store(folder / "precious", "precious");
  fs::create_symlink(folder / "precious", partial);
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { AtomicFile file(path); }), "out.partial: "));
  EXPECT_EQ(fs::file_size(folder / "precious"), 8U);
  fs::remove(partial);
  fs::create_directory(partial);
  error_of(ExitCode::files, [&] { AtomicFile file(path); });
}

}  // namespace

}  // namespace kzero::storage
