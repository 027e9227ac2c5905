#include "data/teacher_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>

#include "base/error.hpp"
#include "deck/config.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

const TeacherFacts of_two{
    .top = 2, .positions = 3, .vocab = 10, .sequence = 4, .model = 7, .tokenizer = 8, .content = 9};
const std::vector<Token> teachers_tokens{1, 9, 0, 3, 0, 0};
const std::vector<float> teachers_ln_p{-0.5F, -1.5F, -0.25F, -30, 0, 0};

class FilesOfTeachers : public TokenFiles {
 protected:
  static std::vector<std::byte> bytes_of(const std::vector<Token>& tokens,
                                         const std::vector<float>& ln_p) {
    std::vector<std::byte> bytes = teacher_header(of_two);
    const std::string positions = teacher_positions(tokens, ln_p, of_two.top);
    for (const char c : positions) bytes.push_back(static_cast<std::byte>(c));
    return bytes;
  }

  std::string write(const std::vector<std::byte>& bytes) const {
    std::ofstream file(path("t"), std::ios::binary);
    file.write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    return path("t");
  }

  /// Reads the file that `change` makes of a good one.
  void expect_refusal(const std::string& part,
                      const std::function<void(std::vector<std::byte>&)>& change) const {
    std::vector<std::byte> bytes = bytes_of(teachers_tokens, teachers_ln_p);
    change(bytes);
    try {
      const TeacherFile file(write(bytes));
      std::vector<Token> tokens(6);
      std::vector<float> ln_p(6);
      file.read(0, 3, tokens.data(), ln_p.data());
      ADD_FAILURE() << "expected: " << part;
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_EQ(error.code(), ExitCode::files);
      EXPECT_EQ(text.find(path("t") + ": "), 0U) << text;
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
};

TEST_F(FilesOfTeachers, AreReadAsTheyWereWritten) {
  const auto bytes = bytes_of(teachers_tokens, teachers_ln_p);
  EXPECT_EQ(std::ssize(bytes), 256 + 3 * deck::teacher_position_bytes(2));
  const TeacherFile file(write(bytes));
  EXPECT_EQ(file.facts().top, 2);
  EXPECT_EQ(file.facts().positions, 3);
  EXPECT_EQ(file.facts().vocab, 10);
  EXPECT_EQ(file.facts().sequence, 4);
  EXPECT_EQ(file.facts().model, 7U);
  EXPECT_EQ(file.facts().tokenizer, 8U);
  EXPECT_EQ(file.facts().content, 9U);
  for (Index first = 0; first < 3; ++first) {
    for (Index count = 0; first + count <= 3; ++count) {
      std::vector<Token> tokens(2 * count);
      std::vector<float> ln_p(2 * count);
      file.read(first, count, tokens.data(), ln_p.data());
      for (Index i = 0; i < 2 * count; ++i) {
        EXPECT_EQ(tokens[i], teachers_tokens[2 * first + i]);
        EXPECT_EQ(ln_p[i], teachers_ln_p[2 * first + i]);
      }
    }
  }
}

TEST_F(FilesOfTeachers, AreRefusedIfDamaged) {
  expect_refusal("is not a file of a teacher's", [](auto& b) { b[0] = std::byte{'k'}; });
  expect_refusal("is not a file of a teacher's", [](auto& b) { b.resize(255); });
  expect_refusal("is version 2", [](auto& b) { b[8] = std::byte{2}; });
  expect_refusal("its header is damaged", [](auto& b) { b[40] ^= std::byte{1}; });
  expect_refusal("counts 3 positions of 24 bytes", [](auto& b) { b.resize(b.size() - 24); });
  expect_refusal("counts 3 positions of 24 bytes", [](auto& b) { b.resize(b.size() - 1); });
  expect_refusal("counts 3 positions of 24 bytes", [](auto& b) { b.push_back({}); });
  expect_refusal("position 1 is damaged", [](auto& b) { b[256 + 24] ^= std::byte{1}; });
  expect_refusal("position 2 has token 10, but its vocabulary allows 0 to 9", [](auto& b) {
    b = bytes_of({1, 9, 0, 3, 10, 0}, teachers_ln_p);
  });
  expect_refusal("position 1 has ln p = nan of token 3, but it must be finite and at most 0",
                 [](auto& b) {
                   b = bytes_of(teachers_tokens, {-1, -2, -1, std::nanf(""), 0, 0});
                 });
  expect_refusal("position 1 has ln p = -inf of token 3", [](auto& b) {
    b = bytes_of(teachers_tokens, {-1, -2, -1, -INFINITY, 0, 0});
  });
  expect_refusal("position 0 has ln p = 0.5 of token 1", [](auto& b) {
    b = bytes_of(teachers_tokens, {0.5F, -2, -1, -1, 0, 0});
  });
}

TEST_F(FilesOfTeachers, OfAnotherKindAreRefused) {
  const TeacherFile file(write(bytes_of(teachers_tokens, teachers_ln_p)));
  EXPECT_NO_THROW(file.require(2, 3, 10, 4));
  const auto refusal = [&](Index top, Index positions, Index vocab, Index sequence) {
    try {
      file.require(top, positions, vocab, sequence);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_NE(refusal(3, 3, 10, 4).find("has 2 tokens of each position, but distill.top = 3"),
            std::string::npos);
  EXPECT_NE(refusal(2, 4, 10, 4).find("has 3 positions, but the data has 4"), std::string::npos);
  EXPECT_NE(refusal(2, 3, 11, 4).find("a teacher with 10 tokens, but model.vocab = 11"),
            std::string::npos);
  EXPECT_NE(
      refusal(2, 3, 10, 0).find("read sequences of 4 tokens, but the training reads documents"),
      std::string::npos);
}

}  // namespace
}  // namespace kzero::data
