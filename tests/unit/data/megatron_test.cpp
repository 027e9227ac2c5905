// Formats "megatron" and "raw". The tests build index files according to the format's definition.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <limits>

#include "data/formats.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), sizeof(T) * values.size()};
}

/// The numbers in an index. By default, the counts match the lists.
struct Description {
  std::uint8_t type = 8;
  std::vector<std::int32_t> lengths{};
  std::vector<std::int64_t> offsets{};
  std::vector<std::int64_t> documents{0};
  std::string modes{};
  std::uint64_t version = 1;
  Index more_sequences = 0, more_documents = 0;

  std::string bytes() const {
    const std::vector<std::uint64_t> counts{
        static_cast<std::uint64_t>(std::ssize(lengths) + more_sequences),
        static_cast<std::uint64_t>(std::ssize(documents) + more_documents)};
    return std::string("MMIDIDX\0\0", 9) + bytes_of(std::vector{version}) +
           static_cast<char>(type) + bytes_of(counts) + bytes_of(lengths) + bytes_of(offsets) +
           bytes_of(documents) + modes;
  }
};

class MegatronFiles : public TokenFiles {
 protected:
  template <class T>
  std::string write(const std::string& name, const std::vector<T>& tokens,
                    const Description& index) {
    write_text(name + ".idx", index.bytes());
    return write_text(name + ".bin", bytes_of(tokens));
  }

  static std::vector<Token> read(const std::string& file, Index vocab = 50000) {
    return all(TokenStream({file}, DataFormat::megatron, vocab));
  }

  static std::string refusal(const std::string& file) {
    return error_of([&] { read(file); });
  }
};

using Narrow = std::uint16_t;
const std::vector<Narrow> five{7, 65000 % 50000, 3, 49999, 0};

TEST_F(MegatronFiles, SequencesAreOneStream) {
  const Description index{
      .type = 8, .lengths = {2, 0, 3}, .offsets = {0, 4, 4}, .documents = {0, 2, 3}};
  const std::string file = write("a", five, index);
  const std::vector<Token> expected(five.begin(), five.end());
  EXPECT_EQ(read(file), expected);
  Description with_modes = index;
  with_modes.modes = std::string("\0\1\0", 3);
  EXPECT_EQ(read(write("modes", five, with_modes)), expected);
}

TEST_F(MegatronFiles, AllTypesOfTokensAreRead) {
  const auto check = [&]<class T>(T, std::uint8_t type) {
    const std::vector<T> tokens{1, 2, static_cast<T>(std::numeric_limits<T>::max() - 1)};
    const std::string file =
        write(fmt::format("type{}", type), tokens,
              {.type = type, .lengths = {3}, .offsets = {0}, .documents = {0, 1}});
    EXPECT_EQ(read(file, std::numeric_limits<Token>::max()),
              std::vector<Token>(tokens.begin(), tokens.end()));
  };
  check(std::uint8_t{}, 1);
  check(std::int8_t{}, 2);
  check(std::int16_t{}, 3);
  check(std::int32_t{}, 4);
  check(std::uint16_t{}, 8);
}

TEST_F(MegatronFiles, NegativeTokensAreNamed) {
  const std::vector<std::int16_t> tokens{5, -3, 7};
  const std::string file =
      write("negative", tokens, {.type = 3, .lengths = {3}, .offsets = {0}, .documents = {0, 1}});
  const TokenStream stream({file}, DataFormat::megatron, 60000);
  ProblemList problems;
  stream.check_tokens(0, 1, problems);
  EXPECT_EQ(problems.text(), file +
                                 ": token 1 (counted from 0) is -3, but model.vocab = 60000 allows "
                                 "0 to 59999; no vocabulary has token -3: write the file again");
  EXPECT_NE(error_of([&] { all(stream); }).find("token 1 (counted from 0) is -3"),
            std::string::npos);
}

TEST_F(MegatronFiles, ALongIndexIsReadToItsEnd) {
  const Index sequences = 40001;
  Description index;
  std::vector<Narrow> tokens;
  for (Index i = 0; i < sequences; ++i) {
    index.lengths.push_back(static_cast<std::int32_t>(i % 3));
    index.offsets.push_back(2 * std::ssize(tokens));
    for (Index t = 0; t < i % 3; ++t) tokens.push_back(static_cast<Narrow>(i % 49999));
  }
  const std::string file = write("long", tokens, index);
  EXPECT_EQ(read(file), std::vector<Token>(tokens.begin(), tokens.end()));
  index.lengths.back() += 3;
  write("long", tokens, index);
  EXPECT_NE(refusal(file).find(fmt::format("sequence {} (counted from 0)", sequences - 1)),
            std::string::npos)
      << refusal(file);
}

TEST_F(MegatronFiles, WhatDoesNotFitIsRefusedWithItsReason) {
  const Description good{.lengths = {2, 3}, .offsets = {0, 4}, .documents = {0, 1, 2}};
  EXPECT_EQ(refusal(write("good", five, good)), "no error");
  const auto expect = [&](const char* name, const std::string& reason, auto change) {
    Description index = good;
    change(index);
    const std::string file = write(name, five, index), text = refusal(file);
    EXPECT_EQ(text.find(path(name) + std::string(".idx: ")), 0U) << text;
    EXPECT_NE(text.find(reason), std::string::npos) << text;
  };
  expect("version", "is version 2 of", [](Description& i) { i.version = 2; });
  expect("int64", "its tokens are int64, but only integers of 8, 16 and 32 bits",
         [](Description& i) { i.type = 5; });
  expect("float", "its tokens are float32", [](Description& i) { i.type = 7; });
  expect("type0", "has tokens of type 0", [](Description& i) { i.type = 0; });
  expect("type9", "has tokens of type 9", [](Description& i) { i.type = 9; });
  expect("wide", "has 12 bytes from byte 4 on, but its .bin has 10", [](Description& i) {
    i.type = 4, i.lengths = {1, 3};
  });
  expect("negative", "sequence 1 (counted from 0) has length -3",
         [](Description& i) { i.lengths[1] = -3; });
  expect("before", "has 4 bytes from byte -2 on", [](Description& i) { i.offsets[0] = -2; });
  expect("after", "has 6 bytes from byte 6 on, but its .bin",
         [](Description& i) { i.offsets[1] = 6; });
  expect("huge", "has 6 bytes from byte 9223372036854775807 on",
         [](Description& i) { i.offsets[1] = std::numeric_limits<std::int64_t>::max(); });
  expect("short", "its sequences have 8 bytes, but its .bin has 10",
         [](Description& i) { i.lengths[1] = 2; });
  const auto expect_places = [&](const char* name, const std::string& reason,
                                 std::vector<std::int32_t> lengths,
                                 std::vector<std::int64_t> offsets) {
    expect(name, reason, [&](Description& i) { i.lengths = lengths, i.offsets = offsets; });
  };
  expect_places("twice", "sequence 1 (counted from 0) begins at byte 0, but must begin at byte 10",
                {5, 5}, {0, 0});
  expect_places("overlap", "sequence 1 (counted from 0) begins at byte 2, but must begin at byte 4",
                {2, 3}, {0, 2});
  expect_places("falling", "sequence 0 (counted from 0) begins at byte 6, but must begin at byte 0",
                {2, 3}, {6, 0});
  expect_places("swapped", "sequence 1 (counted from 0) begins at byte 6, but must begin at byte 2",
                {1, 2, 2}, {0, 6, 2});
  expect_places("gap", "sequence 1 (counted from 0) begins at byte 6, but must begin at byte 4",
                {2, 2}, {0, 6});
  expect_places("empty", "sequence 1 (counted from 0) begins at byte 8, but must begin at byte 4",
                {2, 0, 3}, {0, 8, 4});
  expect("few", "its head counts 1 sequences and 3 documents",
         [](Description& i) { i.more_sequences = -1; });
  expect("many", "its head counts 7 sequences", [](Description& i) { i.more_sequences = 5; });
  expect("countless", "its head counts 1152921504606846978 sequences",
         [](Description& i) { i.more_sequences = Index{1} << 60; });
  expect("documents", "which do not fit in 82 bytes", [](Description& i) { i.more_documents = 2; });
}

TEST_F(MegatronFiles, NoIndexIsSaidWithItsName) {
  const std::string file = write_text("alone.bin", "abcd");
  EXPECT_EQ(refusal(file).find(path("alone.idx") + ": cannot be read (No such file or directory); "
                                                   "data.format = \"megatron\" needs the .idx"),
            0U)
      << refusal(file);
  write_text("alone.idx", "MMIDIDX");
  EXPECT_NE(refusal(file).find("7 bytes are too short"), std::string::npos);
  write_text("alone.idx", std::string(50, 'x'));
  EXPECT_NE(refusal(file).find("does not start as an index"), std::string::npos);
}

TEST_F(MegatronFiles, AnIndexThatIsNoFileIsRefused) {
  const std::string file = write_text("a.bin", "abcd");
  ASSERT_EQ(::mkfifo(path("a.idx").c_str(), 0600), 0);
  EXPECT_EQ(refusal(file), path("a.idx") + ": is a FIFO, but an index must be a regular file");
  std::filesystem::remove(path("a.idx"));
  std::filesystem::create_directory(path("a.idx"));
  EXPECT_EQ(refusal(file), path("a.idx") + ": is a folder, but an index must be a regular file");
}

TEST_F(MegatronFiles, FormatsPointToEachOther) {
  const std::string file = write("a", five, {.lengths = {5}, .offsets = {0}, .documents = {0, 1}});
  const auto opened_as = [&](const std::string& name, DataFormat format) {
    return error_of([&] { TokenStream({name}, format, 50000); });
  };
  EXPECT_NE(opened_as(file, DataFormat::raw)
                .find("a.idx is in the same folder); set data.format = \"megatron\""),
            std::string::npos);
  EXPECT_NE(opened_as(path("a.idx"), DataFormat::megatron)
                .find("looks like the index of a Megatron-LM dataset; name its .bin instead"),
            std::string::npos);
  EXPECT_EQ(opened_as(path("a"), DataFormat::megatron),
            path("a") + ": cannot be opened for reading: No such file or directory; name " + file);
  EXPECT_NE(opened_as(path("a.idx"), DataFormat::bytes).find("set data.format = \"megatron\""),
            std::string::npos);
  EXPECT_NE(
      opened_as(write_llmc("llmc.bin", {1, 2}), DataFormat::raw).find("set data.format = \"llmc\""),
      std::string::npos);
}

TEST_F(MegatronFiles, TheDigestSeesTheType) {
  const auto digest = [&](const Description& index) {
    return TokenStream({write("a", five, index)}, DataFormat::megatron, 50000).digest();
  };
  const Description whole{.lengths = {5}, .offsets = {0}, .documents = {0, 1}};
  const std::uint64_t expected = digest(whole);
  EXPECT_EQ(digest({.lengths = {2, 3}, .offsets = {0, 4}, .documents = {0, 1, 2}}), expected)
      << "the same stream";
  Description as_signed = whole;
  as_signed.type = 3;
  EXPECT_NE(digest(as_signed), expected);
}

class RawFiles : public MegatronFiles {};

TEST_F(RawFiles, AreTokensAndNothingElse) {
  const std::vector<std::uint32_t> wide{5, 70000, 2147483646};
  const std::string narrow_file = write_text("narrow", bytes_of(five)),
                    wide_file = write_text("wide", bytes_of(wide));
  EXPECT_EQ(all(TokenStream({narrow_file}, TokenEncoding(DataFormat::raw, 2), 50000)),
            std::vector<Token>(five.begin(), five.end()));
  const TokenStream stream({wide_file}, TokenEncoding(DataFormat::raw, 4), 2147483647);
  EXPECT_EQ(all(stream), std::vector<Token>(wide.begin(), wide.end()));
  EXPECT_NE(stream.digest(),
            TokenStream({wide_file}, TokenEncoding(DataFormat::raw, 2), 70000).digest());
}

TEST_F(RawFiles, AreWholeNumbersOfTokens) {
  const std::string file = write_text("odd", "abcdef");
  EXPECT_EQ(
      error_of([&] { TokenStream({file}, TokenEncoding(DataFormat::raw, 4), 50000); }),
      file +
          ": 6 bytes are not a multiple of the token width, 4 bytes; the file is truncated, or its "
          "tokens have another width");
}

}  // namespace
}  // namespace kzero::data
