#include "data/dataset.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <numeric>
#include <set>
#include <vector>

#include "base/error.hpp"
#include "data/permutation.hpp"
#include "data/sampler.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::data {
namespace {

std::vector<Index> order_of(const Permutation& permutation, Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) order[i] = permutation(i);
  return order;
}

TEST(Permutation, HoldsEachElementOnceAtEverySize) {
  std::vector<Index> sizes(130);
  std::iota(sizes.begin(), sizes.end(), 1);
  sizes.insert(sizes.end(), {1023, 1024, 1025, 4096, 4097, 100003});
  for (const Index count : sizes) {
    auto order = order_of(Permutation(count, 5, 0), count);
    std::sort(order.begin(), order.end());
    std::vector<Index> expected(order.size());
    std::iota(expected.begin(), expected.end(), 0);
    ASSERT_EQ(order, expected) << count;
  }
}

TEST(Permutation, DependsOnSeedAndEpochAlone) {
  const auto order = order_of(Permutation(1000, 5, 2), 1000);
  EXPECT_EQ(order, order_of(Permutation(1000, 5, 2), 1000));
  EXPECT_NE(order, order_of(Permutation(1000, 5, 3), 1000));
  EXPECT_NE(order, order_of(Permutation(1000, 6, 2), 1000));
}

TEST(Permutation, ReachesElementsPast32Bits) {
  const Index count = (Index{1} << 40) + 12345;
  const Permutation permutation(count, 1, 0);
  std::set<Index> seen;
  for (Index i = 0; i < 1000; ++i) seen.insert(permutation(count - 1 - i));
  EXPECT_EQ(seen.size(), 1000U);
  EXPECT_LT(*seen.rbegin(), count);
  EXPECT_GT(*seen.rbegin(), count / 2);
}

// Chi-square of position against element over many epochs: (n-1)^2 degrees of freedom for the n x n
// table. The bound is the mean plus six standard deviations. Chance alone exceeds it about once in
// 1e8 cases.
TEST(Permutation, PutsEachElementEquallyOftenAtEachPosition) {
  for (const Index n : {2, 3, 5, 8, 13}) {
    const Index epochs = 4000;
    std::vector<double> counts(static_cast<std::size_t>(n * n), 0);
    for (Index epoch = 0; epoch < epochs; ++epoch) {
      const Permutation permutation(n, 77, static_cast<std::uint64_t>(epoch));
      for (Index i = 0; i < n; ++i) ++counts[i * n + permutation(i)];
    }
    const double expected = static_cast<double>(epochs) / static_cast<double>(n);
    double chi_square = 0;
    for (const double count : counts)
      chi_square += (count - expected) * (count - expected) / expected;
    const auto freedom = static_cast<double>((n - 1) * (n - 1));
    EXPECT_LT(chi_square, freedom + 6 * std::sqrt(2 * freedom) + 12) << n;
  }
}

TEST(BatchPlan, CoversEachSampleOfAStepOnceInTurns) {
  for (const Index ranks : {1, 2, 3, 5, 11}) {
    const BatchPlan plan{.global_batch = 22, .ranks = ranks, .micro_batch = 2, .begin = 5 * 22};
    ASSERT_EQ(plan.micro_batches(), 11);
    Index next = 5 * 22;
    for (Index round = 0; round < plan.rounds(); ++round) {
      for (Index rank = 0; rank < plan.ranks_in(round); ++rank) {
        EXPECT_TRUE(plan.has(rank, round));
        EXPECT_EQ(plan.first_sample(rank, round), next) << ranks;
        next += plan.micro_batch;
      }
      if (round + 1 < plan.rounds()) {
        EXPECT_EQ(plan.ranks_in(round), ranks);
      }
    }
    EXPECT_EQ(next, 6 * 22) << ranks;
  }
}

TEST(BatchPlan, DealsEveryMicroBatchOnceOnAnyNodes) {
  for (const Index nodes : {1, 2, 3, 6}) {
    for (const bool by_node : {false, true}) {
      for (const Index batches : {6, 7, 11, 12, 24}) {
        if (by_node && batches % 6 != 0) continue;
        const BatchPlan plan{batches, 6, 1, nodes, by_node};
        std::vector<int> seen(static_cast<std::size_t>(batches));
        for (Index round = 0; round < plan.rounds(); ++round) {
          for (Index rank = 0; rank < 6; ++rank) {
            if (!plan.has(rank, round)) continue;
            const Index number = plan.number(rank, round);
            ++seen[number];
            EXPECT_EQ(plan.turn(number).rank, rank);
            EXPECT_EQ(plan.turn(number).round, round);
          }
        }
        EXPECT_EQ(seen, std::vector<int>(static_cast<std::size_t>(batches), 1));
      }
    }
  }
}

TEST(BatchPlan, DealsNeighboursToANode) {
  const BatchPlan in_turns{.global_batch = 8, .ranks = 4, .micro_batch = 1, .nodes = 2};
  const BatchPlan by_node{8, 4, 1, 2, true};
  // Ranks 0 and 2 are on the first node.
  EXPECT_EQ(in_turns.number(2, 0), 1);
  EXPECT_EQ(in_turns.number(0, 1), 4);
  EXPECT_EQ(by_node.number(2, 0), 1);
  EXPECT_EQ(by_node.number(0, 1), 2);
  EXPECT_EQ(by_node.number(1, 0), 4);
}

class Samples : public testing::Test {
 protected:
  std::string write(const std::string& name, Index count) const {
    const std::string path = folder_.path() / name;
    std::ofstream file(path, std::ios::binary);
    for (Index i = 0; i < count; ++i) file.put(static_cast<char>(i));
    return path;
  }

  deck::Data deck(Index tokens, deck::DataOrder order) const {
    deck::Data result;
    result.files = {write("training", tokens)};
    result.order = order;
    return result;
  }

  static std::vector<Index> epoch_of(const EpochSource& source, Index epoch) {
    const auto& sampler = dynamic_cast<const Sampler&>(source);
    std::vector<Index> windows;
    for (Index i = 0; i < sampler.windows(); ++i) {
      windows.push_back(sampler.window(epoch * sampler.windows() + i));
    }
    return windows;
  }

  tests::TemporaryFolder folder_;
};

TEST_F(Samples, WindowsShareOneTokenAndTheRestIsLeftOut) {
  const Dataset data = open_dataset(deck(13, deck::DataOrder::sequential), 4, 256, 1);
  ASSERT_EQ(data.training->windows(), 3);
  std::vector<Token> inputs(12);
  std::vector<Token> targets(12);
  data.training->batch(0, 3, inputs.data(), targets.data());
  for (Token i = 0; i < 12; ++i) {
    EXPECT_EQ(inputs[i], i);
    EXPECT_EQ(targets[i], i + 1);
  }
}

TEST_F(Samples, AnEndTokenDividesAWindow) {
  deck::Data settings = deck(13, deck::DataOrder::sequential);
  const std::uint64_t undivided = open_dataset(settings, 4, 256, 1).training_digest();
  settings.end_token = 5;
  const Dataset data = open_dataset(settings, 4, 256, 1);
  EXPECT_NE(data.training_digest(), undivided);
  ASSERT_TRUE(data.training->has_documents());
  EXPECT_EQ(data.training->targets(0, 3), std::nullopt) << "every position has one";
  std::vector<Token> inputs(12), targets(12);
  std::vector<std::int32_t> begin(12), end(12);
  data.training->batch(0, 3, inputs.data(), targets.data());
  data.training->documents(0, 3, inputs.data(), begin.data(), end.data());
  EXPECT_EQ(inputs[5], 5);
  EXPECT_EQ(begin, (std::vector<std::int32_t>{0, 0, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0}));
  EXPECT_EQ(end, (std::vector<std::int32_t>{4, 4, 4, 4, 2, 2, 4, 4, 4, 4, 4, 4}));
}

TEST_F(Samples, AnEndTokenAtAWindowsEndBeginsNoDocument) {
  deck::Data settings = deck(13, deck::DataOrder::sequential);
  settings.end_token = 7;
  const Dataset data = open_dataset(settings, 4, 256, 1);
  const std::vector<Token> inputs{4, 5, 6, 7, 7, 7, 6, 6};
  std::vector<std::int32_t> begin(8), end(8);
  data.training->documents(1, 2, inputs.data(), begin.data(), end.data());
  EXPECT_EQ(begin, (std::vector<std::int32_t>{0, 0, 0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(end, (std::vector<std::int32_t>{4, 4, 4, 4, 1, 2, 4, 4}));
}

TEST_F(Samples, AWindowNeedsItsLastTarget) {
  EXPECT_EQ(open_dataset(deck(12, deck::DataOrder::sequential), 4, 256, 1).training->windows(), 2);
  EXPECT_EQ(open_dataset(deck(16, deck::DataOrder::sequential), 4, 256, 1).training->windows(), 3);
}

TEST_F(Samples, SequentialOrderStartsAgainAtAnEpochsEnd) {
  const Dataset data = open_dataset(deck(13, deck::DataOrder::sequential), 4, 256, 1);
  std::vector<Token> inputs(8);
  std::vector<Token> targets(8);
  data.training->batch(5, 2, inputs.data(), targets.data());
  EXPECT_EQ(inputs, (std::vector<Token>{8, 9, 10, 11, 0, 1, 2, 3}));
  EXPECT_EQ(targets, (std::vector<Token>{9, 10, 11, 12, 1, 2, 3, 4}));
}

TEST_F(Samples, ShuffledEpochsHoldEachWindowOnceInOrdersOfTheirOwn) {
  const Dataset data = open_dataset(deck(241, deck::DataOrder::shuffled), 4, 256, 9);
  const auto first = epoch_of(data.training->source(0), 0);
  const auto second = epoch_of(data.training->source(0), 1);
  EXPECT_NE(first, second);
  EXPECT_FALSE(std::is_sorted(first.begin(), first.end()));
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), second.begin(), second.end()));
  EXPECT_EQ(std::set(first.begin(), first.end()).size(), 60U);
  EXPECT_NE(
      first,
      epoch_of(open_dataset(deck(241, deck::DataOrder::shuffled), 4, 256, 8).training->source(0),
               0));
}

TEST_F(Samples, ABatchDoesNotDependOnHowItIsSplit) {
  const Dataset data = open_dataset(deck(241, deck::DataOrder::shuffled), 4, 256, 9);
  std::vector<Token> inputs(400);
  std::vector<Token> targets(400);
  data.training->batch(17, 100, inputs.data(), targets.data());
  for (Index sample = 0; sample < 100; ++sample) {
    std::vector<Token> input(4);
    std::vector<Token> target(4);
    data.training->batch(17 + sample, 1, input.data(), target.data());
    EXPECT_TRUE(std::equal(input.begin(), input.end(), inputs.begin() + 4 * sample));
    EXPECT_TRUE(std::equal(target.begin(), target.end(), targets.begin() + 4 * sample));
  }
}

TEST_F(Samples, AFractionForValidationIsTakenFromTheEndAndNotTrainedOn) {
  deck::Data settings = deck(41, deck::DataOrder::shuffled);
  settings.validation_fraction = 0.2;
  const Dataset data = open_dataset(settings, 4, 256, 1);
  EXPECT_EQ(data.training->windows(), 8);
  EXPECT_EQ(epoch_of(data.validation->source(0), 0), (std::vector<Index>{8, 9}));
  const auto trained = epoch_of(data.training->source(0), 0);
  EXPECT_EQ(*std::max_element(trained.begin(), trained.end()), 7);
}

TEST_F(Samples, ASmallFractionStillValidatesOnOneWindow) {
  deck::Data settings = deck(41, deck::DataOrder::shuffled);
  settings.validation_fraction = 0.001;
  EXPECT_EQ(open_dataset(settings, 4, 256, 1).validation->windows(), 1);
}

TEST_F(Samples, ValidationFilesAreReadInOrderAndLeaveTrainingWhole) {
  deck::Data settings = deck(41, deck::DataOrder::shuffled);
  settings.validation_files = {write("validation", 9)};
  const Dataset data = open_dataset(settings, 4, 256, 1);
  EXPECT_EQ(data.training->windows(), 10);
  EXPECT_EQ(epoch_of(data.validation->source(0), 3), (std::vector<Index>{0, 1}));
}

TEST_F(Samples, TooFewTokensSayHowManyAreNeeded) {
  try {
    open_dataset(deck(4, deck::DataOrder::shuffled), 4, 256, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::files);
    EXPECT_NE(std::string(error.what())
                  .find("hold 4 tokens, but one sample of model.sequence = 4 needs 5"),
              std::string::npos)
        << error.what();
  }
  EXPECT_EQ(open_dataset(deck(5, deck::DataOrder::shuffled), 4, 256, 1).training->windows(), 1);
}

TEST_F(Samples, OneWindowCannotBeDividedForValidation) {
  deck::Data settings = deck(5, deck::DataOrder::shuffled);
  settings.validation_fraction = 0.5;
  EXPECT_THROW(open_dataset(settings, 4, 256, 1), Error);
}

TEST_F(Samples, RanksTogetherCheckEveryToken) {
  const deck::Data settings = deck(41, deck::DataOrder::shuffled);  // tokens 0 to 40
  const auto complaints = [&](Index vocab) {
    const Dataset data = open_dataset(settings, 4, vocab, 1);
    std::size_t count = 0;
    for (Index part = 0; part < 7; ++part) {
      ProblemList problems;
      data.check_tokens(part, 7, problems);
      count += problems.problems().size();
    }
    return count;
  };
  EXPECT_EQ(complaints(41), 0U);
  EXPECT_EQ(complaints(40), 1U);
}

TEST_F(Samples, AllThatIsWrongWithTheFilesIsSaidAtOnce) {
  deck::Data settings;
  settings.files = {folder_.path() / "absent", write("short", 3), folder_.path() / "*.bin"};
  settings.validation_files = {folder_.path() / "missing"};
  ProblemList problems;
  const Dataset data = open_dataset(settings, 4, 256, 1, problems);
  EXPECT_EQ(problems.problems().size(), 3U) << problems.text();
  EXPECT_EQ(data.training, nullptr);
  EXPECT_THROW(open_dataset(settings, 4, 256, 1), Error);

  settings.files = settings.validation_files = {folder_.path() / "short"};
  ProblemList too_short;
  open_dataset(settings, 4, 256, 1, too_short);
  ASSERT_EQ(too_short.problems().size(), 2U) << too_short.text();
  EXPECT_EQ(too_short.problems()[1].subject, "data.validation_files");
}

TEST_F(Samples, TheDigestSeesWhatChangesASample) {
  deck::Data settings = deck(41, deck::DataOrder::shuffled);
  const std::uint64_t whole = open_dataset(settings, 4, 256, 1).training_digest();
  EXPECT_EQ(whole, open_dataset(settings, 4, 256, 1).training_digest());
  EXPECT_NE(whole, open_dataset(settings, 5, 256, 1).training_digest());
  EXPECT_NE(whole, open_dataset(settings, 4, 256, 2).training_digest());
  deck::Data split = settings;
  split.validation_fraction = 0.25;
  EXPECT_NE(whole, open_dataset(split, 4, 256, 1).training_digest());
  settings.order = deck::DataOrder::sequential;
  const std::uint64_t in_order = open_dataset(settings, 4, 256, 1).training_digest();
  EXPECT_NE(whole, in_order);
  EXPECT_EQ(in_order, open_dataset(settings, 4, 256, 2).training_digest());  // draws nothing
}

}  // namespace
}  // namespace kzero::data
