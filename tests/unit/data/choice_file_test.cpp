#include "data/choice_file.hpp"

#include "base/input_file.hpp"
#include "support/error_text.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

template <class F>
std::string error_text(F&& f) {
  return tests::error_of(ExitCode::files, f);
}

/// The 16-bit integers of an example, including its byte count.
std::vector<std::uint16_t> example_words(std::uint16_t label,
                                         const std::vector<std::vector<std::uint16_t>>& runs) {
  std::vector<std::uint16_t> words{65535, 0, 0, label, static_cast<std::uint16_t>(runs.size() - 1)};
  for (const auto& run : runs) {
    words.push_back(static_cast<std::uint16_t>(run.size()));
    words.insert(words.end(), run.begin(), run.end());
  }
  words[1] = static_cast<std::uint16_t>(2 * words.size());
  return words;
}

bool begins_as_one(const std::string& file) {
  const std::string head = first_bytes(file, 4).value_or("");
  return is_choice_file(std::as_bytes(std::span(head)));
}

class ChoiceFiles : public TokenFiles {
 protected:
  std::string write(const std::vector<std::uint16_t>& words, std::int32_t examples = 1,
                    std::int32_t version = 1) const {
    return write_llmc("choices.bin", words, {20240522, version, examples});
  }

  /// The error message for these words, without path and header bytes.
  std::string refusal(const std::vector<std::uint16_t>& words, std::int32_t examples = 1) const {
    const std::string file = write(words, examples);
    return error_text([&] { read_choices(file, 100); });
  }
};

TEST_F(ChoiceFiles, ExamplesAreReadAsTheyWereWritten) {
  auto words = example_words(1, {{1, 2, 3}, {4}, {5, 6}});
  const auto more = example_words(0, {{7}, {8, 9, 10, 11}, {12}, {13}});
  words.insert(words.end(), more.begin(), more.end());
  const std::string file = write(words, 2);
  EXPECT_TRUE(begins_as_one(file));
  const auto examples = read_choices(file, 14);
  ASSERT_EQ(examples.size(), 2U);
  EXPECT_EQ(examples[0].label, 1);
  EXPECT_EQ(examples[0].context, (std::vector<Token>{1, 2, 3}));
  EXPECT_EQ(examples[0].endings, (std::vector<std::vector<Token>>{{4}, {5, 6}}));
  EXPECT_EQ(examples[1].label, 0);
  EXPECT_EQ(examples[1].endings.size(), 3U);
  EXPECT_EQ(longest_row(examples), 5);
  EXPECT_EQ(longest_row({}), 0);
}

TEST_F(ChoiceFiles, OtherFilesAreNone) {
  EXPECT_FALSE(begins_as_one(path("nothing")));
  EXPECT_FALSE(begins_as_one(write_text("text", "abc")));
  const std::string tokens =
      write_llmc("tokens.bin", std::vector<std::uint16_t>{1}, {20240520, 1, 1});
  EXPECT_FALSE(begins_as_one(tokens));
  EXPECT_NE(error_text([&] { read_choices(tokens, 100); }).find("begin with 20240522"),
            std::string::npos);
  EXPECT_NE(error_text([&] { read_choices(path("nothing"), 100); }).find("cannot be opened"),
            std::string::npos);
  EXPECT_EQ(error_text([&] { read_choices(path(""), 100); }), path("") + ": is not a regular file");
  const std::string newer = write(example_words(0, {{1}, {2}, {3}}), 1, 3);
  EXPECT_NE(error_text([&] { read_choices(newer, 100); }).find("is version 3"), std::string::npos);
}

TEST_F(ChoiceFiles, TokensAbove16BitsAreReadFromVersion2) {
  const std::uint32_t start = 0xffffffff;
  const std::vector<std::uint32_t> good{start, 44, 0, 1, 2, 1, 65536, 1, 70000, 1, 151935};
  const auto file = [&](const std::vector<std::uint32_t>& words, std::int32_t version = 2) {
    return write_llmc("wide.bin", words, {20240522, version, 1});
  };
  const auto examples = read_choices(file(good), 151936);
  ASSERT_EQ(examples.size(), 1U);
  EXPECT_EQ(examples[0].label, 1);
  EXPECT_EQ(examples[0].context, std::vector<Token>{65536});
  EXPECT_EQ(examples[0].endings, (std::vector<std::vector<Token>>{{70000}, {151935}}));
  const auto refusal = [&](const std::string& path, Index vocab) {
    return error_text([&] { read_choices(path, vocab); });
  };
  EXPECT_NE(refusal(file(good), 70001).find("byte 1068: an ending has token 151935"),
            std::string::npos);
  auto other = good;
  other[0] = 65535;
  EXPECT_NE(refusal(file(other), 151936).find("does not begin with 4294967295"), std::string::npos);
  other = good;
  other[5] = start;
  EXPECT_NE(refusal(file(other), 151936).find("its context has 4294967295 tokens, but only 5"),
            std::string::npos);
  EXPECT_NE(refusal(write_llmc("odd.bin", std::vector<std::uint16_t>{1}, {20240522, 2, 1}), 100)
                .find("no multiple of 4"),
            std::string::npos);
}

TEST_F(ChoiceFiles, ASparseFileIsNotLoaded) {
  const std::string file = write(example_words(0, {{1}, {2}, {3}}), 1, 1);
  std::filesystem::resize_file(file, std::uintmax_t{1} << 40);
  EXPECT_EQ(error_text([&] { read_choices(file, 100); }),
            file + ": has 1099511627776 bytes; a file of choices has 1073741824 at most");
}

TEST_F(ChoiceFiles, DamageIsRefusedWithItsPlace) {
  const auto good = example_words(0, {{1}, {2}, {3}});
  const auto expect = [&](const std::vector<std::uint16_t>& words, const std::string& text,
                          std::int32_t examples = 1) {
    EXPECT_NE(refusal(words, examples).find(text), std::string::npos)
        << refusal(words, examples) << " lacks " << text;
  };
  const auto changed = [&](std::size_t at, std::uint16_t word) {
    auto words = good;
    words[at] = word;
    return words;
  };
  expect(changed(0, 7), "example 0 (counted from 0), byte 1026: does not begin with 65535");
  expect(changed(1, 5), "declares 5 bytes, but has 22");
  expect(changed(3, 2), "has label 2, but 2 endings");
  expect(changed(4, 1), "has 1 endings");
  expect(changed(5, 0), "its context has no tokens");
  expect(changed(6, 100), "has token 100, but the model's vocabulary allows 0 to 99");
  expect(changed(9, 9), "an ending has 9 tokens, but only 1 follow");
  expect(good, "ends before an example", 2);
  expect({}, "counts 0 examples", 0);
  auto longer = good;
  longer.push_back(1);
  expect(longer, "counts 1 examples, but 2 bytes follow them");
}

}  // namespace
}  // namespace kzero::data
