#include "data/token_file.hpp"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::data {
namespace {

using deck::DataFormat;

class TokenFile : public testing::Test {
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

  tests::TemporaryFolder folder_;
};

TEST_F(TokenFile, BytesAreTokensUpTo255) {
  std::string text(256, ' ');
  std::iota(text.begin(), text.end(), '\0');
  const TokenStream stream({write_text("all", text)}, DataFormat::bytes);
  std::vector<Token> expected(256);
  std::iota(expected.begin(), expected.end(), 0);
  EXPECT_EQ(all(stream), expected);
}

TEST_F(TokenFile, SeveralFilesAreOneStreamAlsoAcrossAnEmptyOne) {
  const TokenStream stream({write_text("a", "abc"), write_text("b", ""), write_text("c", "de")},
                           DataFormat::bytes);
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

TEST_F(TokenFile, GlobsAreSortedAndDuplicatesKeptOnce) {
  for (const char* name : {"b.txt", "a.txt", "c.txt", "other"}) write_text(name, name);
  std::filesystem::create_directory(path("folder.txt"));
  const auto files = expand_files({path("c.txt"), path("*.txt"), path("./a.txt")});
  EXPECT_EQ(files, (std::vector<std::string>{path("c.txt"), path("a.txt"), path("b.txt")}));
}

TEST_F(TokenFile, APatternWithoutMatchIsNamed) {
  write_text("a.txt", "a");
  const std::string text = error_of([&] { expand_files({path("*.txt"), path("*.bin")}); });
  EXPECT_NE(text.find(path("*.bin") + "\" matches no file"), std::string::npos) << text;
}

TEST_F(TokenFile, LlmcTokensAreRead) {
  const TokenStream stream({write_llmc("a", {1, 65535, 3}), write_llmc("b", {4})},
                           DataFormat::llmc);
  EXPECT_EQ(all(stream), (std::vector<Token>{1, 65535, 3, 4}));
}

TEST_F(TokenFile, LlmcHeadersAreCheckedStrictly) {
  const auto message = [&](const std::string& file) {
    return error_of([&] { TokenStream({file}, DataFormat::llmc); });
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

TEST_F(TokenFile, TokensPastTheVocabularyAreNamedByFileAndPosition) {
  const std::string bad = write_llmc("bad", {5, 6, 100, 7});
  const TokenStream stream({write_llmc("good", {99, 1}), bad}, DataFormat::llmc);
  EXPECT_NO_THROW(stream.check_tokens(101, 0, stream.size()));
  EXPECT_NO_THROW(stream.check_tokens(100, 0, 4)) << "the bad token is not in this part";
  const std::string text = error_of([&] { stream.check_tokens(100, 3, 3); });
  EXPECT_NE(text.find(bad + ": token 2 (counted from 0) is 100, but model.vocab = 100"),
            std::string::npos)
      << text;
}

TEST_F(TokenFile, BytesAreCheckedAgainstASmallVocabulary) {
  const TokenStream stream({write_text("text", "aaz")}, DataFormat::bytes);
  EXPECT_NO_THROW(stream.check_tokens('z' + 1, 0, 3));
  const std::string text = error_of([&] { stream.check_tokens('z', 0, 3); });
  EXPECT_NE(text.find("token 2 (counted from 0) is 122"), std::string::npos) << text;
}

TEST_F(TokenFile, AFileOfManyScanPiecesIsCheckedToItsEnd) {
  std::vector<std::uint16_t> tokens((std::size_t{1} << 23) + 3, 7);
  tokens.back() = 9;
  const TokenStream stream({write_llmc("long", tokens)}, DataFormat::llmc);
  EXPECT_NO_THROW(stream.check_tokens(10, 0, stream.size()));
  const std::string text = error_of([&] { stream.check_tokens(9, 0, stream.size()); });
  EXPECT_NE(text.find("token 8388610 "), std::string::npos) << text;
}

TEST_F(TokenFile, TheDigestTellsNameSizeAndOrderButNotFolder) {
  const std::string a = write_text("a", "one");
  const std::string b = write_text("b", "three");
  std::filesystem::create_directory(path("moved"));
  const auto digest = [](const std::vector<std::string>& files) {
    return TokenStream(files, DataFormat::bytes).digest();
  };
  const std::uint64_t first = digest({a, b});
  EXPECT_EQ(first, digest({a, b}));
  EXPECT_EQ(first, digest({write_text("moved/a", "one"), write_text("moved/b", "three")}));
  EXPECT_NE(first, digest({b, a}));
  EXPECT_NE(first, digest({a, write_text("c", "three")}));
  EXPECT_NE(first, digest({a, write_text("b", "longer")}));
}

TEST_F(TokenFile, AMissingFileIsNamed) {
  const std::string text = error_of([&] { TokenStream({path("absent")}, DataFormat::bytes); });
  EXPECT_NE(text.find(path("absent")), std::string::npos) << text;
}

}  // namespace
}  // namespace kzero::data
