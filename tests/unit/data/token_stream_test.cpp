#include "data/token_stream.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.hpp"
#include "data/file_list.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::data {
namespace {

using deck::DataFormat;

class TokenFiles : public testing::Test {
 protected:
  std::string path(const std::string& name) const { return folder_.path() / name; }

  std::string write_text(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }

  std::string write_llmc(const std::string& name, const std::vector<std::uint16_t>& tokens,
                         std::array<std::int32_t, 3> head) const {
    std::array<std::int32_t, 256> header{};
    std::copy(head.begin(), head.end(), header.begin());
    std::ofstream file(path(name), std::ios::binary);
    file.write(reinterpret_cast<const char*>(header.data()), sizeof header);
    file.write(reinterpret_cast<const char*>(tokens.data()),
               static_cast<std::streamsize>(2 * tokens.size()));
    return path(name);
  }

  std::string write_llmc(const std::string& name, const std::vector<std::uint16_t>& tokens) const {
    return write_llmc(name, tokens, {20240520, 1, static_cast<std::int32_t>(tokens.size())});
  }

  static std::string error_of(auto&& action) {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ExitCode::files);
      return error.what();
    }
    return "no error";
  }

  static std::vector<Token> all(const TokenStream& stream) {
    std::vector<Token> tokens(static_cast<std::size_t>(stream.size()));
    stream.read(0, stream.size(), tokens.data());
    return tokens;
  }

  static std::vector<std::string> expanded(const std::vector<std::string>& patterns) {
    ProblemList problems;
    auto files = expand_files(patterns, problems);
    EXPECT_EQ(problems.text(), "");
    return files;
  }

  tests::TemporaryFolder folder_;
};

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
        EXPECT_EQ(tokens[static_cast<std::size_t>(i)], 'a' + begin + i);
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

TEST_F(TokenFiles, LlmcTokensAreRead) {
  const TokenStream stream({write_llmc("a", {1, 65535, 3}), write_llmc("b", {4})}, DataFormat::llmc,
                           65536);
  EXPECT_EQ(all(stream), (std::vector<Token>{1, 65535, 3, 4}));
}

TEST_F(TokenFiles, LlmcHeadersAreCheckedStrictly) {
  const auto message = [&](const std::string& file) {
    return error_of([&] { TokenStream({file}, DataFormat::llmc, 65536); });
  };
  const auto expect = [&](const std::string& file, const std::string& part) {
    const std::string text = message(file);
    EXPECT_EQ(text.find(file + ": "), 0U) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  expect(write_text("short", "words"), "5 bytes are too short");
  expect(write_llmc("magic", {1}, {20240521, 1, 1}), "starts with 20240521");
  expect(write_llmc("version", {1}, {20240520, 2, 1}), "is version 2");
  expect(write_llmc("cut", {1, 2}, {20240520, 1, 3}), "counts 3 tokens");
  expect(write_llmc("long", {1, 2}, {20240520, 1, 1}), "counts 1 tokens");
  expect(write_llmc("negative", {1, 2}, {20240520, 1, -1}), "counts -1 tokens");
}

TEST_F(TokenFiles, FilesOfOtherFormatsAreRefusedWithTheWayOut) {
  const auto refusal = [](const std::string& file, DataFormat format) {
    return error_of([&] { TokenStream({file}, format, 65536); });
  };
  const auto expect = [&](const std::string& file, DataFormat format, const std::string& looks) {
    const std::string text = refusal(file, format);
    EXPECT_EQ(text.find(file + ": "), 0U) << text;
    EXPECT_NE(text.find("looks like " + looks), std::string::npos) << text;
    EXPECT_NE(text.find("set data.format = \"llmc\""), std::string::npos) << text;
  };
  expect(write_llmc("llmc", {1, 2}), DataFormat::bytes, "a token file of llm.c;");
  const std::string megatron("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17);
  const std::string others[][2] = {
      {write_llmc("wide", {1, 0}, {20240801, 7, 1}), "a token file of llm.c with 32-bit tokens"},
      {write_text("array.npy", "\x93NUMPY\1\0v"), "a numpy array"},
      {write_text("set.idx", megatron), "the index of a Megatron-LM dataset"},
      {write_text("set.bin", "tokens"), "the tokens of a Megatron-LM dataset (set.idx lies"}};
  for (const auto& [file, looks] : others) {
    expect(file, DataFormat::bytes, looks);
    expect(file, DataFormat::llmc, looks);
  }
  write_text("text.idx", "of another kind");
  for (const std::string& file : {write_text("text.bin", "text"), write_text("set.txt", "text")})
    EXPECT_EQ(refusal(file, DataFormat::bytes), "no error");
}

TEST_F(TokenFiles, NoMessageLeadsFromATokenFileToBytes) {
  const std::string raw(4096, '\7');  // 16-bit tokens without a header
  for (const std::string& file : {write_text("raw", raw), write_text("short", "\7\0\7")}) {
    const std::string text = error_of([&] { TokenStream({file}, DataFormat::llmc, 65536); });
    EXPECT_NE(text.find("header"), std::string::npos) << text;
    EXPECT_EQ(text.find("\"bytes\""), std::string::npos) << text;
  }
}

TEST_F(TokenFiles, TokensPastTheVocabularyAreNamedByFileAndPosition) {
  const std::string good = write_llmc("good", {99, 1});
  const std::string bad = write_llmc("bad", {5, 6, 100, 7}), worse = write_llmc("worse", {7, 300});
  const auto problems_of = [&](Index vocab, Index part, Index parts) {
    ProblemList problems;
    TokenStream({good, bad, worse}, DataFormat::llmc, vocab).check_tokens(part, parts, problems);
    return problems.text();
  };
  EXPECT_EQ(problems_of(301, 0, 1), "");
  EXPECT_EQ(problems_of(100, 0, 2), "") << "the bad tokens are not in this part";
  const auto line = [](const std::string& file, Index position, Index token) {
    return fmt::format(
        "{}: token {} (counted from 0) is {}, but model.vocab = 100 allows 0 to 99; raise "
        "model.vocab to at least {} or use other data",
        file, position, token, token + 1);
  };
  const std::string both = line(bad, 2, 100) + "\n" + line(worse, 1, 300);
  EXPECT_EQ(problems_of(100, 0, 1), both);
  EXPECT_EQ(problems_of(100, 1, 2), both);
}

TEST_F(TokenFiles, ALongFileIsCheckedAndReadToItsEnd) {
  std::vector<std::uint16_t> tokens((std::size_t{1} << 20) + 3, 7);
  tokens.back() = 9;
  const std::string file = write_llmc("long", tokens);
  ProblemList none, problems;
  TokenStream({file}, DataFormat::llmc, 10).check_tokens(0, 1, none);
  EXPECT_EQ(none.text(), "");
  const TokenStream narrow({file}, DataFormat::llmc, 9);
  narrow.check_tokens(0, 1, problems);
  EXPECT_NE(problems.text().find("token 1048578 "), std::string::npos) << problems.text();
  EXPECT_EQ(all(TokenStream({file}, DataFormat::llmc, 10)),
            std::vector<Token>(tokens.begin(), tokens.end()));
  std::vector<Token> out(tokens.size());
  EXPECT_NE(error_of([&] { narrow.read(0, narrow.size(), out.data()); }).find("token 1048578 "),
            std::string::npos);
}

TEST_F(TokenFiles, AFileThatIsCutWhileItIsOpenIsAnErrorWithItsPlace) {
  const std::string file = write_llmc("cut", std::vector<std::uint16_t>(100, 5));
  const TokenStream stream({write_llmc("before", {1, 2}), file}, DataFormat::llmc, 10);
  std::filesystem::resize_file(file, 1024 + 2 * 60 + 1);
  std::vector<Token> out(102);
  EXPECT_NO_THROW(stream.read(0, 62, out.data()));
  const std::string expected =
      file +
      ": token 60 (counted from 0) cannot be read: the file had 1224 bytes when it was opened and "
      "has 1145 now";
  for (const auto& [first, size] : {std::pair<Index, Index>{0, 102}, {62, 1}}) {
    const std::string text =
        error_of([&, begin = first, count = size] { stream.read(begin, count, out.data()); });
    EXPECT_EQ(text.find(expected), 0U) << text;
  }
  const std::string text = error_of([&] { stream.read(90, 1, out.data()); });
  EXPECT_EQ(text.find(file + ": token 88 (counted"), 0U) << text;
}

TEST_F(TokenFiles, AFileThatIsOverwrittenWhileItIsOpenIsAnErrorWithItsPlace) {
  const std::string file = write_llmc("spoilt", std::vector<std::uint16_t>(100, 5));
  const TokenStream stream({file}, DataFormat::llmc, 50257);
  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).seekp(1024 + 2 * 70)
      << "\xFF\xFF";
  std::vector<Token> out(100);
  EXPECT_NO_THROW(stream.read(0, 70, out.data()));
  const std::string text = error_of([&] { stream.read(0, 100, out.data()); });
  EXPECT_EQ(text.find(file + ": token 70 (counted from 0) is 65535, but model.vocab = 50257"), 0U)
      << text;
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
