#include "data/token_stream.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "data/file_list.hpp"
#include "unit/data/token_files.hpp"

namespace kzero::data {
namespace {

std::vector<std::string> expanded(const std::vector<std::string>& patterns) {
  ProblemList problems;
  auto files = expand_files(patterns, problems);
  EXPECT_EQ(problems.text(), "");
  return files;
}

TEST_F(TokenFiles, BytesAreTokensUpTo255) {
  std::string text(256, ' ');
  std::iota(text.begin(), text.end(), '\0');
  const TokenStream stream({write_text("all", text)}, DataFormat::bytes, 256);
  std::vector<Token> expected(256);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all(stream), expected);
}

TEST_F(TokenFiles, SeveralFilesAreOneStreamAlsoAcrossAnEmptyOne) {
  const TokenStream stream({write_text("a", "abc"), write_text("b", ""), write_text("c", "de")},
                           DataFormat::bytes, 256);
  ASSERT_EQ(stream.size(), 5);
  for (Index begin = 0; begin <= 5; ++begin) {
    for (Index count = 0; begin + count <= 5; ++count) {
      std::vector<Token> tokens(static_cast<std::size_t>(count) + 1, -7);
      stream.read(begin, count, tokens.data());
      for (Index i = 0; i < count; ++i) {
        EXPECT_EQ(tokens[i], 'a' + begin + i);
      }
      EXPECT_EQ(tokens.back(), -7) << "wrote past the end";
    }
  }
}

TEST_F(TokenFiles, MatchesAreSortedAndDuplicatesKeptOnce) {
  for (const char* name : {"b.txt", "a.txt", "c.txt", "other"}) write_text(name, name);
  std::filesystem::create_directory(path("folder.txt"));
  EXPECT_EQ(expanded({path("c.txt"), path("*.txt"), path("./a.txt")}),
            (std::vector<std::string>{path("c.txt"), path("a.txt"), path("b.txt")}));
}

TEST_F(TokenFiles, StarAndQuestionMarkAloneAreWildcards) {
  std::filesystem::create_directory(path("d[0]"));
  for (const char* name : {"a1.txt", "a[1].txt", "d[0]/x", "w*", "wx"}) write_text(name, name);
  const auto names = [&](const std::string& pattern) { return expanded({path(pattern)}); };
  using Files = std::vector<std::string>;
  EXPECT_EQ(names("a[1].txt"), Files{path("a[1].txt")});
  EXPECT_EQ(names("a[1].*"), Files{path("a[1].txt")});
  EXPECT_EQ(names("a?.txt"), Files{path("a1.txt")});
  EXPECT_EQ(names("d[0]/*"), Files{path("d[0]/x")});
  EXPECT_EQ(names("w*"), Files{path("w*")}) << "a file of that very name is meant";
  EXPECT_EQ(error_of([&] {
              TokenStream({path("a[2].txt")}, DataFormat::bytes, 256);
            }).find(path("a[2].txt") + ": cannot be opened"),
            0U);
}

TEST_F(TokenFiles, APatternWithoutMatchIsNamed) {
  write_text("a.txt", "a");
  ProblemList problems;
  expand_files({path("*.txt"), path("*.bin")}, problems);
  EXPECT_EQ(problems.text().find(path("*.bin") + ": matches no file"), 0U) << problems.text();
}

TEST_F(TokenFiles, OnlyRegularFilesAreData) {
  ASSERT_EQ(::mkfifo(path("fifo.txt").c_str(), 0600), 0);
  std::filesystem::create_directory(path("folder"));
  const auto message = [](const std::string& file) {
    return error_of([&] { TokenStream({file}, DataFormat::bytes, 256); });
  };
  EXPECT_EQ(message(path("fifo.txt")).find(path("fifo.txt") + ": is a FIFO"), 0U);
  EXPECT_EQ(message(path("*.txt")).find(path("fifo.txt") + ": is a FIFO"), 0U);
  EXPECT_EQ(message(path("folder")).find(path("folder") + ": is a folder"), 0U);
  EXPECT_EQ(message("/dev/zero").find("/dev/zero: is a device"), 0U);
}

TEST_F(TokenFiles, AllBadFilesAreNamedAtOnce) {
  const std::string text = error_of([&] {
    TokenStream(
        {path("absent"), write_text("short", "words"), path("*.bin"), write_llmc("good", {1})},
        DataFormat::llmc, 65536);
  });
  for (const char* part : {"absent: cannot be opened", "short: 5 bytes", "*.bin: matches no file"})
    EXPECT_NE(text.find(part), std::string::npos) << text;
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 2) << text;
}

TEST_F(TokenFiles, MoreFilesMayBeOpenThanTheLimitBefore) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  if (before.rlim_max < 200) GTEST_SKIP() << "the system allows few open files";
  std::vector<std::string> files;
  for (int i = 0; i < 100; ++i) files.push_back(write_text(fmt::format("f{}", i), "x"));
  const rlimit tight{40, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  EXPECT_NO_THROW(EXPECT_EQ(TokenStream(files, DataFormat::bytes, 256).size(), 100));
  ::setrlimit(RLIMIT_NOFILE, &before);
}

TEST_F(TokenFiles, TheDigestTellsNameSizeAndOrderButNotFolder) {
  const std::string a = write_text("a", "one");
  const std::string b = write_text("b", "three");
  std::filesystem::create_directory(path("moved"));
  const auto digest = [](const std::vector<std::string>& files) {
    return TokenStream(files, DataFormat::bytes, 256).digest();
  };
  const std::uint64_t first = digest({a, b});
  EXPECT_EQ(first, digest({a, b}));
  EXPECT_EQ(first, digest({write_text("moved/a", "one"), write_text("moved/b", "three")}));
  EXPECT_NE(first, digest({b, a}));
  EXPECT_NE(first, digest({a, write_text("c", "three")}));
  EXPECT_NE(first, digest({a, write_text("b", "longer")}));
}

TEST_F(TokenFiles, AMissingFileIsNamed) {
  const std::string text = error_of([&] { TokenStream({path("absent")}, DataFormat::bytes, 256); });
  EXPECT_NE(text.find(path("absent")), std::string::npos) << text;
}

}  // namespace
}  // namespace kzero::data
