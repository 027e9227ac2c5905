// Files that are read and files that are refused. A pipe without a writer would block forever if it
// were opened or read like a file.
#include "base/input_file.hpp"

#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "base/checksum.hpp"
#include "support/error_text.hpp"
#include "support/temporary_folder.hpp"

namespace kzero {

namespace {

namespace fs = std::filesystem;
using State = Loaded::State;
using tests::contains;
using tests::error_of;

class InputFiles : public testing::Test {
 protected:
  tests::TemporaryFolder temporary;
  fs::path folder = temporary.path();
  fs::path file = folder / "file";
  fs::path empty = folder / "empty";
  fs::path missing = folder / "missing";
  fs::path pipe = folder / "pipe";
  const std::string bytes = std::string("ab\0c\r\n", 6) + std::string(300000, '\xff');

  InputFiles() {
    std::ofstream(file, std::ios::binary) << bytes;
    std::ofstream(empty, std::ios::binary);
    EXPECT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  }
};

TEST_F(InputFiles, AreReadInPartsUpToTheirEnd) {
  const InputFile input(file);
  EXPECT_EQ(input.bytes(), std::ssize(bytes));
  std::string part(4, '.');
  EXPECT_EQ(input.read(1, std::as_writable_bytes(std::span(part))), 4);
  EXPECT_EQ(part, bytes.substr(1, 4));
  EXPECT_EQ(input.read(input.bytes() - 1, std::as_writable_bytes(std::span(part))), 1);
  EXPECT_EQ(input.read(input.bytes(), std::as_writable_bytes(std::span(part))), 0);
}

TEST_F(InputFiles, HaveAChecksumOfSeveralRegions) {
  const InputFile input(file);
  const Region regions[] = {{2, 3}, {0, 1}, {5, 299999}};
  const std::string wanted = bytes.substr(2, 3) + bytes[0] + bytes.substr(5, 299999);
  EXPECT_EQ(input.checksum(regions), checksum(std::as_bytes(std::span(wanted))));
  const Region beyond[] = {{300000, 100}};
  const std::string rest = bytes.substr(300000);
  EXPECT_EQ(input.checksum(beyond), checksum(std::as_bytes(std::span(rest))));
}

TEST_F(InputFiles, AreRefusedUnlessTheyAreRegularFiles) {
  const auto refusal = [](const fs::path& path) {
    return error_of(ExitCode::files, [&] { const InputFile input(path); });
  };
  EXPECT_EQ(refusal(missing), missing.string() + ": cannot be opened (No such file or directory)");
  EXPECT_EQ(refusal(folder), folder.string() + ": is a folder, not a regular file");
  for (const fs::path& path : {pipe, fs::path("/dev/zero")}) {
    EXPECT_EQ(refusal(path),
              path.string() + ": is a pipe, a device or a socket, not a regular file");
  }
}

TEST_F(InputFiles, AreLoadedUpToALimit) {
  EXPECT_TRUE(load_file(file) == bytes);
  EXPECT_TRUE(load_file(file, std::ssize(bytes)) == bytes);
  EXPECT_EQ(load_file(empty, 0), "");
  EXPECT_EQ(error_of(ExitCode::files, [&] { load_file(file, 1024); }),
            file.string() + ": has 292.97 KiB; a file of its kind has 1.00 KiB at most");
  EXPECT_TRUE(contains(error_of(ExitCode::files, [&] { load_file(pipe); }), "not a regular file"));
}

TEST_F(InputFiles, AreLoadedOrItIsKnownWhyNot) {
  const Loaded good = try_load(file, std::ssize(bytes));
  EXPECT_EQ(good.state, State::good);
  EXPECT_TRUE(good.bytes == bytes);
  EXPECT_EQ(good.file_bytes, std::ssize(bytes));
  EXPECT_EQ(try_load(empty).state, State::good);
  const Loaded large = try_load(file, std::ssize(bytes) - 1);
  EXPECT_EQ(large.state, State::too_large);
  EXPECT_EQ(large.file_bytes, std::ssize(bytes));
  EXPECT_EQ(large.bytes, "");
  EXPECT_EQ(try_load(missing).state, State::missing);
  EXPECT_EQ(try_load(missing).error, ENOENT);
  EXPECT_EQ(try_load(folder).state, State::not_regular);
  EXPECT_EQ(try_load(pipe).state, State::not_regular);
  EXPECT_EQ(try_load("/dev/zero").state, State::not_regular);
}

TEST_F(InputFiles, HaveFirstBytes) {
  EXPECT_EQ(first_bytes(file, 4), bytes.substr(0, 4));
  EXPECT_TRUE(first_bytes(file, 1000000) == bytes);
  EXPECT_EQ(first_bytes(empty, 4), "");
  for (const fs::path& path : {missing, folder, pipe, fs::path("/dev/zero")})
    EXPECT_EQ(first_bytes(path, 4), std::nullopt) << path;
  // A regular file that cannot be read, even by root: its first byte is not mapped.
  EXPECT_EQ(first_bytes("/proc/self/mem", 4), std::nullopt);
}

}  // namespace

}  // namespace kzero
