#include "data/teacher_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <numeric>

#include "base/error.hpp"
#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "support/document_file.hpp"
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

/// Data whose token n is `first` + n, and a teacher that says this token of position n.
class TaughtSamples : public TokenFiles {
 protected:
  static constexpr Index vocab = 1000, sequence = 7, top = 2;

  std::string write_teacher(const std::string& name, Index first, Index positions,
                            Index of_sequence) const {
    std::vector<Token> tokens;
    std::vector<float> ln_p;
    for (Index n = first; n < first + positions; ++n) {
      tokens.insert(tokens.end(), {static_cast<Token>(n), 0});
      ln_p.insert(ln_p.end(), {-1.0F - static_cast<float>(n), -5000.0F});
    }
    std::ofstream file(path(name), std::ios::binary);
    const auto header = teacher_header(
        {.top = top, .positions = positions, .vocab = vocab, .sequence = of_sequence});
    file.write(reinterpret_cast<const char*>(header.data()), std::ssize(header));
    file << teacher_positions(tokens, ln_p, top);
    return path(name);
  }

  std::string write_stream(const std::string& name, Index first, Index count) const {
    std::vector<std::uint16_t> tokens(static_cast<std::size_t>(count));
    std::iota(tokens.begin(), tokens.end(), static_cast<std::uint16_t>(first));
    return write_llmc(name, tokens);
  }

  /// Expects at each position with a target what the teacher says of its input.
  static void expect_own_positions(const deck::Data& deck, const std::vector<std::string>& files) {
    const Dataset dataset =
        open_dataset(deck, sequence, vocab, 11, std::string(), {.file = files, .top = top});
    ASSERT_TRUE(dataset.training->has_teacher());
    EXPECT_FALSE(dataset.validation && dataset.validation->has_teacher());
    constexpr Index count = 3;
    std::vector<Token> inputs(count * sequence), targets(count * sequence),
        tokens(count * sequence * top);
    std::vector<float> ln_p(count * sequence * top);
    Index compared = 0;
    for (Index first = 0; first < 3 * dataset.training->windows(); first += count) {
      dataset.training->batch(first, count, inputs.data(), targets.data());
      dataset.training->teacher(first, count, top, tokens.data(), ln_p.data());
      for (Index i = 0; i < count * sequence; ++i) {
        if (targets[i] == no_target) continue;
        ASSERT_EQ(tokens[i * top], inputs[i]) << "sample " << first + i / sequence;
        ASSERT_EQ(ln_p[i * top], -1.0F - static_cast<float>(inputs[i]));
        ++compared;
      }
    }
    EXPECT_GT(compared, 100);
  }
};

TEST_F(TaughtSamples, OfStreamsHaveTheirOwnPositionsInAnyOrder) {
  for (const auto order : {deck::DataOrder::sequential, deck::DataOrder::shuffled}) {
    deck::Data deck;
    deck.format = DataFormat::llmc, deck.order = order, deck.validation_fraction = 0.2;
    deck.files = {write_stream("a", 0, 200), write_stream("b", 200, 91)};
    expect_own_positions(deck, {write_teacher("t", 0, 290, sequence)});
  }
}

TEST_F(TaughtSamples, OfABlendHaveThoseOfTheirSource) {
  deck::Data deck;
  deck.format = DataFormat::llmc;
  deck.blend = {{.files = {write_stream("a", 0, 150)}},
                {.files = {write_stream("b", 400, 90)}, .weight = 2}};
  expect_own_positions(
      deck, {write_teacher("t", 0, 149, sequence), write_teacher("u", 400, 89, sequence)});
}

TEST_F(TaughtSamples, OfDocumentsHaveThemWhateverThePacking) {
  std::vector<tests::Document> documents;
  Token next = 0;
  for (Index d = 0; d < 60; ++d) {
    tests::Document document;
    for (Index i = 0; i < 1 + d * 5 % sequence; ++i) {
      document.tokens.push_back(next++);
      document.targets.push_back(i > 0 ? 1 : 0);
    }
    documents.push_back(document);
  }
  tests::DocumentNumbers(documents).write(path("d"));
  for (const auto order : {deck::DataOrder::sequential, deck::DataOrder::shuffled}) {
    deck::Data deck;
    deck.format = DataFormat::documents, deck.order = order;
    deck.files = {path("d")};
    expect_own_positions(deck, {write_teacher("t", 0, next, 0)});
  }
}

}  // namespace
}  // namespace kzero::data
