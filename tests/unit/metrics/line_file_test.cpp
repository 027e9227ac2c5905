#include "metrics/line_file.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::metrics {
namespace {

namespace fs = std::filesystem;

class Lines : public testing::Test {
 protected:
  static std::string text_of(const fs::path& path) {
    std::ifstream file(path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  std::string refusal() const {
    try {
      const LineFile file(path_);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::files);
      return error.what();
    }
    return "none";
  }

  tests::TemporaryFolder folder_;
  fs::path path_ = folder_.path() / "metrics.jsonl";
};

TEST_F(Lines, AnEarlierRunsFileGetsTheNumberAfterTheHighest) {
  const auto begin = [&](const std::string& line) {
    LineFile file(path_);
    file.start_afresh();
    file.write_line(line);
    return file.old_name();
  };
  const std::string first = R"({"event":"first"})", second = R"({"event":"second"})";
  EXPECT_EQ(begin(first), "");
  EXPECT_EQ(begin(second), "metrics.1.jsonl");
  write(folder_.path() / "metrics.old.jsonl", "");
  write(folder_.path() / "metrics.7.jsonl", "");
  EXPECT_EQ(begin("third"), "metrics.8.jsonl");
  EXPECT_EQ(text_of(folder_.path() / "metrics.1.jsonl"), first + '\n');
  EXPECT_EQ(text_of(folder_.path() / "metrics.8.jsonl"), second + '\n');
  EXPECT_EQ(text_of(path_), "third\n");
}

TEST_F(Lines, AnEmptyFileIsUsedAsItIs) {
  write(path_, "");
  LineFile file(path_);
  file.start_afresh();
  file.write_line("x");
  EXPECT_EQ(file.old_name(), "");
  EXPECT_EQ(text_of(path_), "x\n");
}

TEST_F(Lines, ALinkStaysAndItsTargetGetsTheNumber) {
  const fs::path target = folder_.path() / "large_disk";
  fs::create_directory(target);
  write(target / "a.jsonl", "{\"event\":\"start\"}\n");
  fs::create_symlink(target / "a.jsonl", path_);
  LineFile(path_).start_afresh();
  EXPECT_TRUE(fs::is_symlink(path_));
  EXPECT_EQ(text_of(target / "a.1.jsonl"), "{\"event\":\"start\"}\n");
  EXPECT_TRUE(fs::exists(target / "a.jsonl"));
}

TEST_F(Lines, ARestartDropsALineThatACrashCut) {
  const std::string whole = "{\"event\":\"start\"}\n", longest(10000, 'x');
  for (const std::string& rest : {std::string(R"({"event":"st)"), "{\"event\":\"" + longest,
                                  std::string(4000, '\0'), std::string()}) {
    write(path_, whole + rest);
    LineFile file(path_);
    file.go_on();
    file.write_line("next");
    EXPECT_EQ(text_of(path_), whole + "next\n");
  }
  write(path_, R"({"event":"st)");
  LineFile(path_).go_on();
  EXPECT_EQ(text_of(path_), "");
}

TEST_F(Lines, ARestartKeepsAWholeLineWithoutItsEnd) {
  write(path_, R"({"event":"start"})");
  LineFile(path_).go_on();
  EXPECT_EQ(text_of(path_), "{\"event\":\"start\"}\n");
}

TEST_F(Lines, AFileThatHoldsSomethingElseIsRefusedAndUntouched) {
  for (const char* text :
       {"Dear diary", "{\"loss\": 1}\n", "[1]", "{", "\x89PNG", "\n\n{\"even\"}"}) {
    write(path_, text);
    const std::string message = refusal();
    if (std::string(text) == "{") {
      EXPECT_EQ(message, "none") << "a crash may have cut it there";
    } else {
      EXPECT_NE(message.find("does not hold metrics"), std::string::npos) << text << message;
    }
    EXPECT_EQ(text_of(path_), text);
  }
  for (const char* text : {"", "{\"event\":\"start\"}\n", "\n {\n \"event\" : \"start\" }"}) {
    write(path_, text);
    EXPECT_EQ(refusal(), "none") << text;
  }
}

TEST_F(Lines, WhatIsNotAFileIsRefusedAtOnce) {
  const fs::path pipe = folder_.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  for (const auto& [path, kind] : {std::pair{pipe, "is a pipe"},
                                   {folder_.path(), "is a folder"},
                                   {fs::path("/dev/zero"), "is a device"}}) {
    path_ = path;
    EXPECT_NE(refusal().find(kind), std::string::npos) << refusal();
  }
}

TEST_F(Lines, NoFileIsNeededToThrowAllAway) {
  LineFile file("/dev/null");
  file.start_afresh();
  file.go_on();
  file.write_line("x");
}

}  // namespace
}  // namespace kzero::metrics
