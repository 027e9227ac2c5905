// llm.c's token files of 16 and of 32 bits are read, refused and checked in the same way.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <limits>

#include "data/dataset.hpp"
#include "unit/data/token_files.hpp"

namespace kzero::data {
namespace {

using Wide = std::uint32_t;
constexpr Index max_vocab = 2147483647;  // limit of the deck's model.vocab

/// The same tokens in files of both widths.
class LlmcFiles : public TokenFiles {
 protected:
  /// Calls f(stored, name of the width). `stored` has the type of the file's tokens.
  template <class F>
  static void for_each_width(const F& f) {
    f(std::uint16_t{}, "16");
    f(std::uint32_t{}, "32");
  }

  static std::string refusal(const std::string& file, DataFormat format) {
    return error_of([&] { TokenStream({file}, format, 65536); });
  }

  static void expect_refusal(const std::string& file, const std::string& part) {
    const std::string text = refusal(file, DataFormat::llmc);
    EXPECT_EQ(text.find(file + ": "), 0U) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }

  static std::string problems_of(const std::vector<std::string>& files, Index vocab, Index part = 0,
                                 Index parts = 1) {
    ProblemList problems;
    TokenStream(files, DataFormat::llmc, vocab).check_tokens(part, parts, problems);
    return problems.text();
  }
};

TEST_F(LlmcFiles, TokensAreReadUpToTheLastOfEachWidth) {
  const TokenStream narrow({write_llmc("a", {1, 65535, 3}), write_llmc("b", {4})}, DataFormat::llmc,
                           65536);
  EXPECT_EQ(all(narrow), (std::vector<Token>{1, 65535, 3, 4}));
  const TokenStream wide({write_llmc<Wide>("c", {1, 65536, 2147483646, 3})}, DataFormat::llmc,
                         max_vocab);
  EXPECT_EQ(all(wide), (std::vector<Token>{1, 65536, 2147483646, 3}));
}

TEST_F(LlmcFiles, FilesOfBothWidthsAreOneStream) {
  const TokenStream stream({write_llmc<Wide>("a", {70000, 1}), write_llmc("b", {2, 65535}),
                            write_llmc<Wide>("c", {151935})},
                           DataFormat::llmc, 151936);
  EXPECT_EQ(all(stream), (std::vector<Token>{70000, 1, 2, 65535, 151935}));
  std::vector<Token> inner(3);
  stream.read(1, 3, inner.data());
  EXPECT_EQ(inner, (std::vector<Token>{1, 2, 65535}));
}

TEST_F(LlmcFiles, SamplesDoNotShowTheWidth) {
  std::vector<std::uint16_t> tokens(1009);
  for (std::size_t i = 0; i < tokens.size(); ++i)
    tokens[i] = static_cast<std::uint16_t>(i * 50261 % 65536);
  const auto half = tokens.begin() + 500;
  const auto samples = [&](const std::vector<std::string>& files) {
    const Index sequence = 7;
    deck::Data deck;
    deck.files = files, deck.format = DataFormat::llmc, deck.validation_fraction = 0.2;
    const Dataset data = open_dataset(deck, sequence, 65536, 3);
    std::vector<Token> inputs(40 * sequence), targets(40 * sequence), found;
    for (const Blend* source : {data.training.get(), data.validation.get()}) {
      source->batch(0, 40, inputs.data(), targets.data());
      found.insert(found.end(), inputs.begin(), inputs.end());
      found.insert(found.end(), targets.begin(), targets.end());
    }
    return found;
  };
  const auto narrow = samples({write_llmc("a", tokens)});
  EXPECT_EQ(narrow, samples({write_llmc<Wide>("b", {tokens.begin(), tokens.end()})}));
  EXPECT_EQ(narrow, samples({write_llmc<Wide>("c", {tokens.begin(), half}),
                             write_llmc("d", {half, tokens.end()})}));
}

TEST_F(LlmcFiles, TheDigestTellsTheWidth) {
  const auto digest = [](const std::string& file) {
    return TokenStream({file}, DataFormat::llmc, 65536).digest();
  };
  const std::uint64_t narrow = digest(write_llmc("a", {1, 0, 2, 0}));
  const std::uint64_t wide = digest(write_llmc<Wide>("a", {1, 2}));  // equal size in bytes
  EXPECT_NE(narrow, wide);
  EXPECT_EQ(wide, digest(write_llmc<Wide>("a", {1, 2})));
}

TEST_F(LlmcFiles, HeadersAreCheckedStrictly) {
  expect_refusal(write_text("short", "words"), "5 bytes are too short");
  const std::string other = write_llmc("magic", {1}, {20240521, 1, 1});
  for (const char* part :
       {"starts with 20240521", "20240520 and 1 for 16", "20240801 and 7 for 32"})
    expect_refusal(other, part);
  expect_refusal(write_llmc("version", {1}, {20240520, 2, 1}),
                 "is version 2 of format \"llmc\" with 16-bit tokens, but only version 1 is read");
  expect_refusal(write_llmc("wide_version", {1}, {20240520, 7, 1}), "is version 7");
  expect_refusal(write_llmc<Wide>("version", {1}, {20240801, 1, 1}),
                 "is version 1 of format \"llmc\" with 32-bit tokens, but only version 7 is read");
  expect_refusal(write_llmc("cut", {1, 2}, {20240520, 1, 3}), "counts 3 tokens of 2 bytes");
  expect_refusal(write_llmc("narrow", {1, 2}, {20240801, 7, 2}),
                 "counts 2 tokens of 4 bytes, which makes 1032 bytes, but the file has 1028");
  for_each_width([&]<class Stored>(Stored, const char* name) {
    const std::int32_t magic = sizeof(Stored) == 4 ? 20240801 : 20240520;
    const std::int32_t version = sizeof(Stored) == 4 ? 7 : 1;
    for (const std::int32_t count : {1, 3, -1, 0x7FFFFFFF}) {
      expect_refusal(write_llmc<Stored>(name, {1, 2}, {magic, version, count}),
                     fmt::format("counts {} tokens", count));
    }
    const std::string tail = write_llmc<Stored>(std::string("tail") + name, {1, 2});
    std::ofstream(tail, std::ios::app) << 'x';
    expect_refusal(tail, "counts 2 tokens");
  });
}

TEST_F(LlmcFiles, FilesOfOtherFormatsAreRefusedWithTheWayOut) {
  const auto expect = [&](const std::string& file, DataFormat format, const std::string& looks,
                          const std::string& way_out = "llmc") {
    const std::string text = refusal(file, format);
    EXPECT_EQ(text.find(file + ": "), 0U) << text;
    EXPECT_NE(text.find("looks like " + looks), std::string::npos) << text;
    EXPECT_NE(text.find("set data.format = \"" + way_out + "\""), std::string::npos) << text;
  };
  expect(write_llmc("llmc", {1, 2}), DataFormat::bytes, "a token file of llm.c;");
  expect(write_llmc<Wide>("wide", {1}), DataFormat::bytes, "a token file of llm.c;");
  const std::string megatron("MMIDIDX\0\0\1\0\0\0\0\0\0\0", 17);
  const std::string others[][3] = {
      {write_text("array.npy", "\x93NUMPY\1\0v"), "a numpy array", "llmc"},
      {write_text("set.idx", megatron), "the index of a Megatron-LM dataset", "megatron"},
      {write_text("set.bin", "tokens"), "the tokens of a Megatron-LM dataset (set.idx is",
       "megatron"}};
  for (const auto& [file, looks, way_out] : others) {
    expect(file, DataFormat::bytes, looks, way_out);
    expect(file, DataFormat::llmc, looks, way_out);
    expect(file, DataFormat::raw, looks, way_out);
  }
  write_text("text.idx", "of another kind");
  for (const std::string& file : {write_text("text.bin", "text"), write_text("set.txt", "text")})
    EXPECT_EQ(refusal(file, DataFormat::bytes), "no error");
}

TEST_F(LlmcFiles, NoMessageLeadsFromATokenFileToBytes) {
  const std::string raw(4096, '\7');  // 16-bit tokens without a header
  for (const std::string& file : {write_text("raw", raw), write_text("short", "\7\0\7")}) {
    const std::string text = refusal(file, DataFormat::llmc);
    EXPECT_NE(text.find("header"), std::string::npos) << text;
    EXPECT_EQ(text.find("\"bytes\""), std::string::npos) << text;
  }
}

std::string beyond_100(const std::string& file, Index position, Index token, Index largest) {
  return fmt::format(
      "{}: token {} (counted from 0) is {}, but model.vocab = 100 allows 0 to 99; raise "
      "model.vocab to at least {} (the rows that model.initial lacks start as the mean of its "
      "rows) or use other data",
      file, position, token, largest + 1);
}

TEST_F(LlmcFiles, TheFirstTokenPastTheVocabularyIsNamedByFileAndPosition) {
  for_each_width([&]<class Stored>(Stored, const char* name) {
    const auto write = [&](const char* file, const std::vector<Stored>& tokens) {
      return write_llmc<Stored>(std::string(file) + name, tokens);
    };
    const std::string good = write("good", {99, 1});
    const std::string bad = write("bad", {5, 6, 100, 7}), worse = write("worse", {7, 300, 65535});
    const std::vector<std::string> files{good, bad, worse};
    EXPECT_EQ(problems_of(files, 65536), "");
    EXPECT_EQ(problems_of({good, bad}, 101), "");
    EXPECT_EQ(problems_of({good, bad}, 100, 0, 2), "") << "the bad token is not in this part";
    EXPECT_EQ(problems_of(files, 100),
              beyond_100(bad, 2, 100, 100) + "\n" + beyond_100(worse, 1, 300, 65535));
    EXPECT_EQ(problems_of(files, 100, 0, 2), beyond_100(worse, 1, 300, 300));
    EXPECT_EQ(problems_of(files, 100, 1, 2),
              beyond_100(bad, 2, 100, 100) + "\n" + beyond_100(worse, 2, 65535, 65535));
  });
}

TEST_F(LlmcFiles, TokensThatNoVocabularyHasAreNamed) {
  const std::string file = write_llmc<Wide>("wide", {1, 2147483646, 2147483647, 4294967295});
  EXPECT_NE(problems_of({file}, 151936).find(": token 1 (counted from 0) is 2147483646, "),
            std::string::npos);
  EXPECT_EQ(problems_of({file}, max_vocab),
            file +
                ": token 2 (counted from 0) is 2147483647, but model.vocab = 2147483647 allows "
                "0 to 2147483646; no vocabulary has token 4294967295: write the file again");
}

TEST_F(LlmcFiles, ALongFileIsCheckedAndReadToItsEnd) {
  for_each_width([&]<class Stored>(Stored, const char* name) {
    std::vector<Stored> tokens((std::size_t{1} << 20) + 3, 7);
    tokens.back() = 9;
    const std::string file = write_llmc<Stored>(name, tokens);
    EXPECT_EQ(problems_of({file}, 10), "");
    const std::string text = problems_of({file}, 9);
    EXPECT_NE(text.find("token 1048578 "), std::string::npos) << text;
    EXPECT_EQ(all(TokenStream({file}, DataFormat::llmc, 10)),
              std::vector<Token>(tokens.begin(), tokens.end()));
    const TokenStream narrow({file}, DataFormat::llmc, 9);
    EXPECT_NE(error_of([&] { all(narrow); }).find("token 1048578 "), std::string::npos);
  });
}

TEST_F(LlmcFiles, AFileThatIsCutWhileItIsOpenIsAnErrorWithItsPlace) {
  for_each_width([&]<class Stored>(Stored, const char* name) {
    const Index width = sizeof(Stored);
    const std::string file = write_llmc<Stored>(name, std::vector<Stored>(100, 5));
    const TokenStream stream({write_llmc("before", {1, 2}), file}, DataFormat::llmc, 10);
    std::filesystem::resize_file(file, static_cast<std::size_t>(1024 + width * 60 + 1));
    std::vector<Token> out(102);
    EXPECT_NO_THROW(stream.read(0, 62, out.data()));
    const std::string expected = fmt::format(
        "{}: token 60 (counted from 0) cannot be read: the file had {} bytes when it was opened "
        "and has {} now",
        file, 1024 + width * 100, 1024 + width * 60 + 1);
    for (const auto& [first, size] : {std::pair<Index, Index>{0, 102}, {62, 1}}) {
      const std::string text =
          error_of([&, begin = first, count = size] { stream.read(begin, count, out.data()); });
      EXPECT_EQ(text.find(expected), 0U) << text;
    }
    const std::string text = error_of([&] { stream.read(90, 1, out.data()); });
    EXPECT_EQ(text.find(file + ": token 88 (counted"), 0U) << text;
  });
}

TEST_F(LlmcFiles, AFileThatIsOverwrittenWhileItIsOpenIsAnErrorWithItsPlace) {
  for_each_width([&]<class Stored>(Stored, const char* name) {
    const std::string file = write_llmc<Stored>(name, std::vector<Stored>(100, 5));
    const TokenStream stream({file}, DataFormat::llmc, 50257);
    const std::string bytes(sizeof(Stored), '\xFF');
    std::fstream(file, std::ios::in | std::ios::out | std::ios::binary)
            .seekp(1024 + static_cast<std::streamoff>(sizeof(Stored)) * 70)
        << bytes;
    std::vector<Token> out(100);
    EXPECT_NO_THROW(stream.read(0, 70, out.data()));
    const std::string text = error_of([&] { stream.read(0, 100, out.data()); });
    EXPECT_EQ(text.find(fmt::format("{}: token 70 (counted from 0) is {}, but model.vocab = 50257",
                                    file, std::numeric_limits<Stored>::max())),
              0U)
        << text;
  });
}

}  // namespace
}  // namespace kzero::data
