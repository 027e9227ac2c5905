#include "data/packed_documents.hpp"

#include <gtest/gtest.h>
#include <fstream>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/philox.hpp"
#include "data/dataset.hpp"
#include "data/permutation.hpp"
#include "support/document_file.hpp"
#include "token_files.hpp"

namespace kzero::data {
namespace {

using tests::Document;

std::vector<Index> starts_of(const std::vector<Index>& lengths) {
  std::vector<Index> starts{0};
  for (const Index length : lengths) starts.push_back(starts.back() + length);
  return starts;
}

std::vector<Index> random_lengths(Index count, Index max, std::uint64_t seed) {
  std::vector<Index> lengths;
  for (Index i = 0; i < count; ++i)
    lengths.push_back(1 + Index{philox(seed, static_cast<std::uint64_t>(i), 0).word[0]} % max);
  return lengths;
}

std::vector<std::vector<std::uint32_t>> rows_of(const Packing& packing) {
  std::vector<std::vector<std::uint32_t>> rows;
  for (Index r = 0; r < packing.rows(); ++r)
    rows.emplace_back(packing.row(r).begin(), packing.row(r).end());
  return rows;
}

TEST(Packing, InOrderIsNextFit) {
  const auto rows = rows_of(pack_in_order(starts_of({3, 4, 1, 8, 2, 7, 1, 1}), 8));
  EXPECT_EQ(rows, (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}, {3}, {4}, {5, 6}, {7}}));
  for (const std::uint64_t seed : {1, 2, 3}) {
    const auto lengths = random_lengths(500, 40, seed);
    std::vector<std::vector<std::uint32_t>> expected(1);
    Index at = 0;
    for (std::uint32_t d = 0; d < lengths.size(); ++d) {
      if (at + lengths[d] > 40) {
        expected.emplace_back();
        at = 0;
      }
      expected.back().push_back(d);
      at += lengths[d];
    }
    EXPECT_EQ(rows_of(pack_in_order(starts_of(lengths), 40)), expected);
  }
}

/// Best-fit as its description says it, with a list of all rows.
std::vector<std::vector<std::uint32_t>> plain_best_fit(const std::vector<Index>& lengths,
                                                       Index sequence, const Permutation& order) {
  struct Row {
    std::vector<std::uint32_t> documents;
    Index room;
    bool is_open = true;
  };
  std::vector<Row> rows;
  for (Index i = 0; i < std::ssize(lengths); ++i) {
    const auto document = static_cast<std::uint32_t>(order(i));
    auto row = rows.end();
    for (auto r = rows.begin(); r != rows.end(); ++r) {
      const bool has_room = r->is_open && r->room >= lengths[document];
      if (has_room && (row == rows.end() || r->room < row->room)) row = r;
    }
    if (row == rows.end()) {
      if (std::ranges::count_if(rows, &Row::is_open) == static_cast<Index>(open_rows)) {
        Row* fullest = nullptr;
        for (Row& r : rows) {
          if (r.is_open && (fullest == nullptr || r.room < fullest->room)) fullest = &r;
        }
        fullest->is_open = false;
      }
      row = rows.insert(rows.end(), {{}, sequence});
    }
    row->documents.push_back(document);
    row->room -= lengths[document];
  }
  std::vector<std::vector<std::uint32_t>> found;
  for (const Row& r : rows) found.push_back(r.documents);
  return found;
}

TEST(Packing, ShuffledIsBestFitIntoOpenRows) {
  for (const Index max : {1, 7, 40, 100}) {
    const auto lengths = random_lengths(700, max, 9);
    for (const std::uint64_t epoch : {0, 1, 5}) {
      EXPECT_EQ(rows_of(pack_shuffled(starts_of(lengths), 100, 3, epoch)),
                plain_best_fit(lengths, 100, Permutation(700, 3, epoch)));
    }
  }
}

class Packed : public TokenFiles {
 protected:
  static constexpr Index sequence = 16;

  std::string write(const std::string& name, const std::vector<Document>& documents) const {
    return tests::DocumentNumbers(documents).write(path(name));
  }

  std::unique_ptr<PackedDocuments> packed(const std::vector<Document>& documents,
                                          deck::DataOrder order, std::uint64_t seed = 7,
                                          Index first = 0) const {
    ProblemList problems;
    const auto files = std::make_shared<DocumentFiles>(std::vector{write("packed.docs", documents)},
                                                       sequence, 1000, problems);
    EXPECT_TRUE(problems.empty()) << problems.text();
    return std::make_unique<PackedDocuments>(files, sequence, first, files->documents() - first,
                                             order, seed);
  }

  struct Sample {
    std::vector<Token> inputs, targets;
    std::vector<std::int32_t> begin, end;
    Index count = 0;
    bool operator==(const Sample&) const = default;
  };

  static Sample read(const BatchSource& samples, Index first, Index count = 1) {
    const auto size = static_cast<std::size_t>(count * sequence);
    Sample s{std::vector<Token>(size, 77), std::vector<Token>(size, 77),
             std::vector<std::int32_t>(size, 77), std::vector<std::int32_t>(size, 77)};
    samples.batch(first, count, s.inputs.data(), s.targets.data());
    samples.documents(first, count, s.inputs.data(), s.begin.data(), s.end.data());
    s.count = samples.targets(first, count).value_or(-1);
    return s;
  }
};

TEST_F(Packed, ASampleHasItsDocumentsAndThenPadding) {
  const std::vector<Document> documents{{{1, 2, 3}, {0, 1, 1}}, {{9}, {0}}, {{4, 5}, {0, 1}}};
  const auto samples = packed(documents, deck::DataOrder::sequential);
  EXPECT_EQ(samples->windows(), 1);
  const Sample s = read(*samples, 3);
  const auto firsts = [](const auto& values) {
    return std::vector(values.begin(), values.begin() + 8);
  };
  EXPECT_EQ(firsts(s.inputs), (std::vector<Token>{1, 2, 3, 9, 4, 5, 0, 0}));
  EXPECT_EQ(firsts(s.targets), (std::vector<Token>{2, 3, -1, -1, 5, -1, -1, -1}));
  EXPECT_EQ(firsts(s.begin), (std::vector<std::int32_t>{0, 0, 0, 3, 4, 4, 6, 7}));
  EXPECT_EQ(firsts(s.end), (std::vector<std::int32_t>{3, 3, 3, 4, 6, 6, 7, 8}));
  EXPECT_EQ(s.begin.back(), 15);
  EXPECT_EQ(s.end.back(), 16);
  EXPECT_EQ(s.count, 3);
  const Fullness full = samples->fullness();
  EXPECT_EQ(full.documents, 3);
  EXPECT_EQ(full.positions, 16);
  EXPECT_EQ(full.tokens, 6);
  EXPECT_EQ(full.targets, 3);
}

TEST_F(Packed, PositionsHaveTheWeightOfTheirDocument) {
  const std::vector<Document> documents{{{1, 2, 3}, {0, 1, 1}}, {{9}, {0}}, {{4, 5}, {0, 1}}};
  const std::string with =
      tests::DocumentNumbers(documents, {0.5F, -2, 3}).write(path("weighted.docs"));
  ProblemList problems;
  const auto files = std::make_shared<DocumentFiles>(std::vector{with}, sequence, 1000, problems);
  const PackedDocuments samples(files, sequence, 0, 3, deck::DataOrder::sequential, 7);
  std::vector<float> weights(2 * sequence, 77);
  ASSERT_TRUE(samples.has_weights());
  samples.weights(3, 2, weights.data());
  std::vector<float> expected{0.5F, 0.5F, 0.5F, -2, 3, 3};
  expected.resize(sequence, 1);
  expected.insert(expected.end(), expected.begin(), expected.begin() + sequence);
  EXPECT_EQ(weights, expected);
  EXPECT_EQ(samples.fullness().least_weight, -2);
  EXPECT_EQ(samples.fullness().largest_weight, 3);
  EXPECT_EQ(samples.targets(0, 1), 3) << "targets are counted, not weighted";
}

TEST_F(Packed, ABlendWeighsDocumentsWithoutWeightsAsOne) {
  const std::vector<Document> documents{{{1, 2}, {0, 1}}};
  deck::Data deck;
  deck.format = DataFormat::documents;
  deck.order = deck::DataOrder::sequential;
  const auto blend_of = [&](const std::string& first, const std::string& second) {
    deck.blend = {{"first", {first}, 1}, {"second", {second}, 1}};
    return open_dataset(deck, sequence, 1000, 7);
  };
  const std::string without = write("without.docs", documents);
  const std::string with = tests::DocumentNumbers(documents, {4}).write(path("with.docs"));
  EXPECT_FALSE(blend_of(without, without).training->has_weights());
  const Dataset data = blend_of(without, with);
  ASSERT_TRUE(data.training->has_weights());
  std::vector<float> weights(4 * sequence, 77);
  data.training->weights(0, 4, weights.data());
  for (Index sample = 0; sample < 4; ++sample) {
    const float expected = data.training->place(sample).source == 1 ? 4 : 1;
    EXPECT_EQ(weights[sample * sequence], expected) << sample;
    EXPECT_EQ(weights[sample * sequence + 1], expected) << sample;
    EXPECT_EQ(weights[sample * sequence + 2], 1) << "padding";
  }
}

/// Pairs of a prompt without targets and answers, written as a file of pairs.
class PackedPairs : public Packed {
 protected:
  static std::vector<Document> answers(Index pairs) {
    std::vector<Document> documents;
    for (Index d = 0; d < 2 * pairs; ++d) {
      Document one{{static_cast<Token>(d / 2), 500}, {0, 0}};
      for (Index i = 0; i < 1 + (3 * d + d / 7) % 5; ++i) {
        one.tokens.push_back(static_cast<Token>(600 + d));
        one.targets.push_back(1);
      }
      documents.push_back(one);
    }
    return documents;
  }

  /// Reads a file of these pairs, and if `log_probs` has values a reference with them.
  std::shared_ptr<DocumentFiles> files_of(const std::vector<Document>& documents,
                                          std::vector<double> log_probs = {}) const {
    tests::DocumentNumbers numbers(documents);
    numbers.version[1] = 1;
    ProblemList problems;
    auto files = std::make_shared<DocumentFiles>(std::vector{numbers.write(path("pairs.docs"))},
                                                 sequence, 1000, problems, deck::DataFormat::pairs);
    EXPECT_TRUE(problems.empty()) << problems.text();
    if (log_probs.empty()) return files;
    const auto bytes = log_prob_bytes({5, files->content_digest(), std::move(log_probs)});
    std::ofstream(path("reference"), std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
    EXPECT_EQ(files->read_reference(path("reference")), 5U);
    return files;
  }
};

TEST_F(PackedPairs, AreKeptTogetherAndListedWithTheirReference) {
  constexpr Index count = 40;
  const std::vector<Document> documents = answers(count);
  std::vector<double> reference;
  for (Index d = 0; d < 2 * count; ++d) reference.push_back(-0.5 * static_cast<double>(d));
  const auto files = files_of(documents, reference);
  for (const auto order : {deck::DataOrder::sequential, deck::DataOrder::shuffled}) {
    const PackedDocuments samples(files, sequence, 4, 2 * count - 4, order, 7);
    const Index windows = samples.windows();
    std::set<Index> seen;
    std::vector<Pair> pairs(windows * sequence / min_pair_tokens);
    const auto found = samples.pairs(0, windows, pairs.data());
    EXPECT_EQ(found, count - 2) << "an epoch has each pair";
    EXPECT_EQ(samples.pairs(0, windows, nullptr), found);
    const Sample all = read(samples, 0, windows);
    for (Index i = 0; i < found.value_or(0); ++i) {
      const Pair& pair = pairs[i];
      const Index number = all.inputs[pair.chosen];  // the prompt is the pair's
      EXPECT_TRUE(seen.insert(number).second);
      const Document &chosen = documents[2 * number], &rejected = documents[2 * number + 1];
      EXPECT_EQ(pair.rejected - pair.chosen, chosen.size());
      EXPECT_EQ(pair.end - pair.rejected, rejected.size());
      EXPECT_EQ(pair.chosen / sequence, (pair.end - 1) / sequence) << "one sequence has both";
      EXPECT_EQ(all.inputs[pair.rejected - 1], chosen.tokens.back());
      EXPECT_EQ(all.inputs[pair.end - 1], rejected.tokens.back());
      EXPECT_EQ(pair.chosen_targets, chosen.size() - 2);
      EXPECT_EQ(pair.rejected_targets, rejected.size() - 2);
      EXPECT_EQ(pair.chosen_reference, reference[2 * number]);
      EXPECT_EQ(pair.rejected_reference, reference[2 * number + 1]);
    }
    EXPECT_EQ(std::ssize(seen), count - 2);
    EXPECT_FALSE(seen.contains(1)) << "the first two are left out";
  }
}

TEST_F(PackedPairs, ADigestSeesTheReference) {
  const std::vector<Document> documents = answers(2);
  const std::uint64_t without = files_of(documents)->digest();
  const std::uint64_t digest = files_of(documents, {-1, -2, -3, -4})->digest();
  EXPECT_NE(digest, without);
  EXPECT_NE(digest, files_of(documents, {-1, -2, -3, -5})->digest());
  EXPECT_EQ(digest, files_of(documents, {-1, -2, -3, -4})->digest());
}

TEST_F(PackedPairs, AreNoneWithoutPairs) {
  const auto samples = packed(answers(3), deck::DataOrder::sequential);
  EXPECT_FALSE(samples->pairs(0, 1, nullptr));
}

/// Each epoch has each document once, unbroken, with its targets; and the counts agree.
void expect_epochs(const PackedDocuments& samples, const std::vector<Document>& documents,
                   Index epochs, Index sequence) {
  Index sample = 0;
  for (Index epoch = 0; epoch < epochs; ++epoch) {
    std::set<std::uint32_t> seen;
    for (; seen.size() < documents.size(); ++sample) {
      std::vector<Token> inputs(static_cast<std::size_t>(sequence)), targets(inputs.size());
      samples.batch(sample, 1, inputs.data(), targets.data());
      Index at = 0;
      for (const std::uint32_t d : samples.documents_of(sample)) {
        EXPECT_TRUE(seen.insert(d).second) << "document " << d << " twice in epoch " << epoch;
        for (Index i = 0; i < documents[d].size(); ++i, ++at) {
          EXPECT_EQ(inputs[at], documents[d].tokens[i]);
          const bool has = i + 1 < documents[d].size() && documents[d].targets[i + 1] == 1;
          EXPECT_EQ(targets[at], has ? documents[d].tokens[i + 1] : no_target);
        }
      }
      EXPECT_EQ(std::ranges::count_if(targets, [](Token t) { return t != no_target; }),
                *samples.targets(sample, 1));
    }
  }
}

TEST_F(Packed, EveryEpochHasEachDocumentOnce) {
  const auto documents = tests::numbered_documents(random_lengths(150, sequence, 5), 1000);
  for (const auto order : {deck::DataOrder::sequential, deck::DataOrder::shuffled})
    expect_epochs(*packed(documents, order), documents, 5, sequence);
}

TEST_F(Packed, ASampleDependsOnItsNumberAlone) {
  const auto documents = tests::numbered_documents(random_lengths(90, sequence, 6), 1000);
  for (const auto order : {deck::DataOrder::sequential, deck::DataOrder::shuffled}) {
    const auto samples = packed(documents, order);
    const Index count = 5 * samples->windows();
    std::vector<Sample> inOrder;
    for (Index s = 0; s < count; ++s) inOrder.push_back(read(*samples, s));
    for (Index s = count - 1; s >= 0; s -= 7)
      EXPECT_EQ(read(*packed(documents, order), s), inOrder[s]) << "a restart at sample " << s;
    const Sample many = read(*samples, 3, count - 3);
    Index targets = 0;
    for (Index s = 3; s < count; ++s) {
      targets += inOrder[s].count;
      EXPECT_TRUE(std::ranges::equal(std::span(many.inputs).subspan((s - 3) * sequence, sequence),
                                     inOrder[s].inputs));
      EXPECT_TRUE(std::ranges::equal(std::span(many.end).subspan((s - 3) * sequence, sequence),
                                     inOrder[s].end));
    }
    EXPECT_EQ(many.count, targets);
  }
}

TEST_F(Packed, ShuffledEpochsDifferBySeedAndEpoch) {
  const auto documents = tests::numbered_documents(random_lengths(400, sequence, 6), 1000);
  const auto samples = packed(documents, deck::DataOrder::shuffled);
  std::set<std::vector<Token>> firsts;
  std::set<Index> sizes;
  for (std::uint64_t epoch = 0; epoch < 6; ++epoch) {
    const auto starts = starts_of(random_lengths(400, sequence, 6));
    sizes.insert(pack_shuffled(starts, sequence, 7, epoch).rows());
  }
  EXPECT_GT(sizes.size(), 1U) << "so that the test sees epochs of different lengths";
  EXPECT_NE(read(*samples, 0), read(*packed(documents, deck::DataOrder::shuffled, 8), 0));
  EXPECT_NE(samples->digest(), packed(documents, deck::DataOrder::shuffled, 8)->digest());
  EXPECT_NE(samples->digest(), packed(documents, deck::DataOrder::sequential)->digest());
  EXPECT_NE(samples->digest(), packed(documents, deck::DataOrder::shuffled, 7, 1)->digest());
  EXPECT_EQ(packed(documents, deck::DataOrder::sequential)->digest(),
            packed(documents, deck::DataOrder::sequential, 8)->digest());
}

TEST_F(Packed, FewOpenRowsAreFullOnShortDocuments) {
  const auto lengths = random_lengths(20000, 2048, 1);
  const auto starts = starts_of(lengths);
  const Packing packing = pack_shuffled(starts, 4096, 1, 0);
  EXPECT_GT(static_cast<double>(starts.back()), 0.98 * 4096 * static_cast<double>(packing.rows()));
}

TEST_F(Packed, DatasetsDivideDocuments) {
  const auto documents = tests::numbered_documents(random_lengths(50, 16, 2), 1000);
  deck::Data deck;
  deck.format = DataFormat::documents;
  deck.files = {write("a.docs", documents)};
  deck.validation_fraction = 0.2;
  const Dataset data = open_dataset(deck, sequence, 1000, 7);
  EXPECT_EQ(data.training->source(0).fullness().documents, 40);
  ASSERT_NE(data.validation, nullptr);
  EXPECT_EQ(read(*data.validation, 0).inputs[0], documents[40].tokens[0]);
  const EpochSource& last = data.validation->source(0);
  Index targets_of_last = 0;
  for (Index row = 0; row < last.windows(); ++row) {
    const Sample found = read(*data.validation, row);
    const auto has = [](Token target) { return target != no_target; };
    EXPECT_EQ(found.count, std::ranges::count_if(found.targets, has)) << "row " << row;
    targets_of_last += found.count;
  }
  EXPECT_EQ(last.fullness().targets, targets_of_last);
  Index tokens_of_last = 0;
  for (const Document& one : std::span(documents).subspan(40)) tokens_of_last += one.size();
  EXPECT_EQ(last.fullness().tokens, tokens_of_last);
  deck.validation_fraction = 0.3;
  EXPECT_NE(open_dataset(deck, sequence, 1000, 7).training->source(0).digest(),
            data.training->source(0).digest());
  EXPECT_TRUE(data.training->has_documents());
  deck.blend = {{"first", deck.files, 3}, {"second", {write("b.docs", documents)}, 1}};
  deck.files.clear();
  const Dataset blend = open_dataset(deck, sequence, 1000, 7);
  Index targets = 0;
  for (Index sample = 0; sample < 40; ++sample) {
    const BlendOrder::Place place = blend.training->place(sample);
    const Sample found = read(*blend.training, sample);
    EXPECT_EQ(found, read(blend.training->source(place.source), place.sample));
    targets += found.count;
  }
  EXPECT_EQ(blend.training->targets(0, 40), targets);
}

TEST_F(Packed, DatasetsWithoutTargetsAreRefused) {
  deck::Config config;
  config.model.sequence = sequence, config.model.vocab = 1000;
  config.train.global_batch = 2, config.train.micro_batch = 1;
  config.data.format = DataFormat::documents;
  const auto text_of = [&] {
    ProblemList problems;
    open_dataset(config, problems);
    return problems.text();
  };
  const std::string none = write("none.docs", {{{1, 2}, {0, 0}}, {{3}, {0}}});
  std::vector<Document> late;
  for (int i = 0; i < 4; ++i) late.push_back({std::vector<Token>(16, 3), std::vector<int>(16, 0)});
  late.back().targets.back() = 1;
  const std::string last = write("late.docs", late);
  config.data.files = {none};
  EXPECT_EQ(text_of(),
            "data.files: none of the 2 documents has a target, so there is nothing to predict; "
            "write the files again with targets");
  config.data.files = {last};
  config.data.validation_fraction = 0.25;
  EXPECT_EQ(text_of(),
            "data.files: without the 1 documents for validation, no document has a target; set a "
            "smaller data.validation_fraction");
  config.data.validation_fraction = 0;
  config.evaluate = {{"short", {last}, DataFormat::documents, 0, 0, 1}};
  EXPECT_EQ(text_of(),
            "evaluate[0].files: the first 2 sequences, which an evaluation reads, have no target; "
            "give other data or more batches");
  config.evaluate[0].batches = 0;
  EXPECT_EQ(text_of(), "");
  config.evaluate[0].batches = 0, config.train.micro_batch = 8, config.train.global_batch = 8;
  EXPECT_EQ(text_of(),
            "evaluate[0].files: the files hold 4 sequences of documents, fewer than "
            "train.micro_batch = 8; give more data");
}

}  // namespace
}  // namespace kzero::data
