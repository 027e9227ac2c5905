#include "data/document_files.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "data/batch_source.hpp"
#include "support/document_file.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

using tests::Document;
using tests::DocumentNumbers;

const std::vector<Document> some{{{5, 6, 7}, {0, 1, 0}}, {{8}, {0}}, {{9, 3, 2, 1}, {0, 0, 1, 1}}};

class FilesOfDocuments : public TokenFiles {
 protected:
  static std::string problems_of(const std::string& file, Index sequence = 8, Index vocab = 10) {
    ProblemList problems;
    const DocumentFiles files({file}, sequence, vocab, problems);
    return problems.text();
  }

  void expect_refusal(const DocumentNumbers& numbers, const std::string& part, Index sequence = 8,
                      Index vocab = 10) const {
    const std::string file = numbers.write(path("bad.docs"));
    const std::string text = problems_of(file, sequence, vocab);
    EXPECT_EQ(text.find(file + ": "), 0U) << text;
    EXPECT_NE(text.find(part), std::string::npos) << text << "\ninstead of\n" << part;
  }

  /// The file of `some` after a change.
  template <class F>
  static DocumentNumbers forged(const F& change) {
    DocumentNumbers numbers(some);
    change(numbers);
    return numbers;
  }
};

TEST_F(FilesOfDocuments, GiveTokensAndTargetsOfEachDocument) {
  ProblemList problems;
  const DocumentFiles files({DocumentNumbers(some).write(path("a.docs")),
                             DocumentNumbers({{{1, 2}, {0, 1}}}).write(path("b.docs"))},
                            4, 10, problems);
  EXPECT_TRUE(problems.empty()) << problems.text();
  EXPECT_EQ(files.documents(), 4);
  EXPECT_EQ(files.size(), 10);
  EXPECT_EQ(files.file_count(), 2);
  std::vector<Token> inputs(4, 77), targets(4, 77);
  const auto expect = [&](Index document, std::vector<Token> tokens, std::vector<Token> predicted) {
    files.read(document, inputs.data(), targets.data());
    const auto length = static_cast<std::size_t>(files.length(document));
    EXPECT_EQ(std::vector(inputs.begin(), inputs.begin() + std::ssize(tokens)), tokens);
    EXPECT_EQ(std::vector(targets.begin(), targets.begin() + std::ssize(predicted)), predicted);
    EXPECT_EQ(length, tokens.size());
  };
  expect(2, {9, 3, 2, 1}, {-1, 2, 1, -1});
  expect(0, {5, 6, 7}, {6, -1, -1});
  expect(1, {8}, {-1});
  expect(3, {1, 2}, {2, -1});
  EXPECT_EQ(files.targets(0), 1);
  EXPECT_EQ(files.targets(1), 0);
  EXPECT_EQ(files.targets(2), 2);
}

TEST_F(FilesOfDocuments, AreReadAcrossBuffers) {
  const auto documents = tests::numbered_documents({3, 9000, 300000, 1, 4096, 4097}, 1000);
  ProblemList problems;
  const DocumentFiles files({DocumentNumbers(documents).write(path("long.docs"))}, 300000, 1000,
                            problems);
  ASSERT_TRUE(problems.empty()) << problems.text();
  for (Index d = 0; d < files.documents(); ++d) {
    const Document& document = documents[d];
    std::vector<Token> inputs(document.tokens.size()), targets(inputs.size());
    files.read(d, inputs.data(), targets.data());
    EXPECT_EQ(inputs, document.tokens) << d;
    EXPECT_EQ(files.targets(d),
              std::accumulate(document.targets.begin(), document.targets.end(), 0));
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const bool has = i + 1 < inputs.size() && document.targets[i + 1] == 1;
      ASSERT_EQ(targets[i], has ? document.tokens[i + 1] : no_target) << d << ' ' << i;
    }
  }
}

TEST_F(FilesOfDocuments, HeadersAreCheckedStrictly) {
  expect_refusal(forged([](auto& f) { f.magic = "KZERODOX"; }), "does not begin with \"KZERODOC\"");
  expect_refusal(forged([](auto& f) { f.version[0] = 2; }),
                 "is version 2 of format \"documents\", but only version 1 is read");
  expect_refusal(forged([](auto& f) { f.version[1] = 4; }), "is version 1 with unknown fields");
  expect_refusal(forged([](auto& f) { f.version[1] = 2; }),
                 "counts 8 tokens in 3 documents, which do not fit");  // without the weights
  expect_refusal(forged([](auto& f) { f.version[1] = 1; }), "looks like a file of pairs");
  for (const std::uint64_t count : {7ULL, 9ULL, 1ULL << 63, ~0ULL}) {
    expect_refusal(forged([&](auto& f) { f.counts[0] = count; }),
                   fmt::format("counts {} tokens in 3 documents, which do not fit", count));
    expect_refusal(forged([&](auto& f) { f.counts[1] = count; }),
                   fmt::format("counts 8 tokens in {} documents, which do not fit", count));
  }
  expect_refusal(DocumentNumbers({}), "has no documents");
  const std::string cut = DocumentNumbers(some).write(path("cut.docs"));
  std::filesystem::resize_file(cut, 100);
  EXPECT_EQ(problems_of(cut), cut +
                                  ": 100 bytes are too short for the 256 byte header of format "
                                  "\"documents\"");
}

TEST_F(FilesOfDocuments, DocumentsAreCheckedStrictly) {
  expect_refusal(forged([](auto& f) { f.starts[0] = 1; }), "begin at token 1 and end at token 8");
  expect_refusal(forged([](auto& f) { f.starts[3] = 9; }), "begin at token 0 and end at token 9");
  expect_refusal(forged([](auto& f) { f.starts[2] = 3; }),
                 "document 1 (counted from 0) begins at token 3 and ends at token 3");
  expect_refusal(forged([](auto& f) { f.starts[1] = ~0ULL; }),
                 "document 0 (counted from 0) begins at token 0 and ends at token -1");
  expect_refusal(forged([](auto& f) { f.words[3] |= 1U << 31; }),
                 "document 1 (counted from 0) begins with a target");
  expect_refusal(DocumentNumbers(some),
                 "1 of 3 documents have more than model.sequence = 3 tokens (document 2, counted "
                 "from 0, has 4); raise model.sequence",
                 3);
  expect_refusal(DocumentNumbers(some),
                 "document 0: token 2 (both counted from 0) is 7, but model.vocab = 7 allows 0 to "
                 "6; raise model.vocab to at least 10",
                 8, 7);
  expect_refusal(forged([](auto& f) { f.words[6] = ~0U; }),
                 "document 2: token 2 (both counted from 0) is 2147483647, but model.vocab = 10 "
                 "allows 0 to 9; no vocabulary has token 2147483647");
  EXPECT_NE(problems_of(path("absent.docs")).find("cannot be opened for reading: No such file"),
            std::string::npos);
  EXPECT_NE(problems_of(folder_.path()).find("is a folder"), std::string::npos);
}

// A sparse file takes no room on a disk, whatever it counts. Memory for the count would be 64 GiB.
TEST_F(FilesOfDocuments, MemoryIsNotTakenForWhatAHeaderCounts) {
  for (const Index count : {Index{1} << 33, (Index{1} << 32) - 3}) {
    DocumentNumbers numbers(some);
    numbers.counts = {8, static_cast<std::uint64_t>(count)};
    numbers.starts.clear(), numbers.words.clear();
    const std::string file = numbers.write(path("sparse.docs"));
    std::filesystem::resize_file(file, 256 + 8 * (count + 1) + 4 * 8);
    EXPECT_EQ(problems_of(file),
              count > (Index{1} << 32)
                  ? file +
                        ": with the files before it there are 8589934592 documents, but a source "
                        "may have 4294967294"
                  : file +
                        ": document 0 (counted from 0) begins at token 0 and ends at token 0, "
                        "but a document has at least one token; write the file again");
  }
}

TEST_F(FilesOfDocuments, MayHaveWeights) {
  const std::string with = DocumentNumbers(some, {0.5F, -2, 0}).write(path("a.docs")),
                    without = DocumentNumbers({{{1, 2}, {0, 1}}}).write(path("b.docs"));
  const auto weights_of = [](const std::vector<std::string>& names) {
    ProblemList problems;
    const DocumentFiles files(names, 8, 10, problems);
    EXPECT_TRUE(problems.empty()) << problems.text();
    std::vector<float> weights;
    for (Index d = 0; d < files.documents(); ++d) weights.push_back(files.weight(d));
    EXPECT_EQ(files.have_weights(), names != std::vector{names.back()} || weights[0] != 1);
    return weights;
  };
  EXPECT_EQ(weights_of({with}), (std::vector<float>{0.5F, -2, 0}));
  EXPECT_EQ(weights_of({without}), (std::vector<float>{1}));
  EXPECT_EQ(weights_of({with, without}), (std::vector<float>{0.5F, -2, 0, 1}));
  EXPECT_EQ(weights_of({without, with}), (std::vector<float>{1, 0.5F, -2, 0}));
  ProblemList problems;
  const DocumentFiles files({with}, 8, 10, problems);
  std::vector<Token> inputs(4), targets(4);
  files.read(2, inputs.data(), targets.data());  // behind the weights
  EXPECT_EQ(inputs, (std::vector<Token>{9, 3, 2, 1}));
  EXPECT_EQ(targets, (std::vector<Token>{-1, 2, 1, -1}));
}

TEST_F(FilesOfDocuments, WeightsAreCheckedStrictly) {
  for (const auto& [weight, said] : {std::pair{std::numeric_limits<float>::quiet_NaN(), "nan"},
                                     std::pair{-std::numeric_limits<float>::infinity(), "-inf"}}) {
    expect_refusal(DocumentNumbers(some, {1, weight, 1}),
                   fmt::format("document 1 (counted from 0) has the weight {}, but a weight is a "
                               "finite number; write the file again",
                               said));
  }
  DocumentNumbers paired(some, {1, 1, 1});
  paired.version[1] = 3;
  const std::string file = paired.write(path("pairs.docs"));
  ProblemList problems;
  const DocumentFiles files({file}, 8, 10, problems, deck::DataFormat::pairs);
  EXPECT_EQ(problems.text(), file +
                                 ": is marked as pairs with weights (3 in bytes 12 to 15), but "
                                 "only documents without pairs have weights (2); write it again");
  const std::string cut = DocumentNumbers(some, {1, 1, 1}).write(path("cut.docs"));
  std::filesystem::resize_file(cut, 256 + 32 + 8);
  EXPECT_EQ(problems_of(cut),
            cut +
                ": its header counts 8 tokens in 3 documents, which do not fit the 296 bytes of "
                "the file; it is truncated or damaged: write it again");
}

TEST_F(FilesOfDocuments, OtherFormatsAreRefusedWithTheWayOut) {
  const std::string file = DocumentNumbers(some).write(path("some.docs"));
  for (const DataFormat format : {DataFormat::bytes, DataFormat::llmc, DataFormat::raw}) {
    const std::string text = error_of([&] { TokenStream({file}, format, 65536); });
    EXPECT_NE(text.find("looks like a file of documents; set data.format = \"documents\""),
              std::string::npos)
        << text;
  }
  const std::string llmc = write_llmc("tokens.bin", {1, 2});
  EXPECT_EQ(problems_of(llmc), llmc +
                                   ": data.format = \"documents\", but it looks like a token "
                                   "file of llm.c; set data.format = \"llmc\"");
}

TEST_F(FilesOfDocuments, AFileThatChangesWhileItIsInUseIsAnErrorWithItsPlace) {
  const std::string file = DocumentNumbers(some).write(path("some.docs"));
  ProblemList problems;
  const DocumentFiles files({file}, 8, 10, problems);
  std::vector<Token> inputs(8), targets(8);
  const auto text_of = [&] {
    return error_of([&] { files.read(2, inputs.data(), targets.data()); });
  };
  forged([](auto& f) { f.words[7] = 1; }).write(file);
  EXPECT_EQ(text_of().find(file + ": tokens 4 to 7 (counted from 0) have 1 targets and are at most "
                                  "9, but had 2 targets"),
            0U)
      << text_of();
  forged([](auto& f) { f.words[5] = 11; }).write(file);
  EXPECT_NE(text_of().find("are at most 11"), std::string::npos) << text_of();
  std::filesystem::resize_file(file, 256 + 32 + 28);
  EXPECT_NE(text_of().find("byte 316 cannot be read"), std::string::npos) << text_of();
}

TEST_F(FilesOfDocuments, TheDigestSeesDocumentsAndTargets) {
  const auto digest_of = [&](const DocumentNumbers& numbers) {
    ProblemList problems;
    return DocumentFiles({numbers.write(path("some.docs"))}, 8, 10, problems).digest();
  };
  const std::uint64_t digest = digest_of(DocumentNumbers(some));
  EXPECT_EQ(digest, digest_of(DocumentNumbers(some)));
  EXPECT_NE(digest, digest_of(forged([](auto& f) { f.starts[1] = 2; })));
  EXPECT_NE(digest, digest_of(forged([](auto& f) { f.words[2] |= 1U << 31; })));
  const std::uint64_t weighted = digest_of(DocumentNumbers(some, {1, 1, 1}));
  EXPECT_NE(digest, weighted);
  EXPECT_NE(weighted, digest_of(DocumentNumbers(some, {1, 1, 2})));
}

}  // namespace
}  // namespace kzero::data
