#include "engine/batches.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/device_memory.hpp"
#include "support/document_file.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

TEST(Batches, HoldTheSamplersTokensGroupedInTheOrderOfTheBatch) {
  const deck::Config config = small_deck();
  const data::Dataset dataset = data::open_dataset(config.data, 13, 101, config.train.seed);
  for (const Index batch : {1, 3, 8}) {
    const Index rows = batch * 13;
    const engine::TokensShape shape{.batch = batch, .sequence = 13, .vocab = 101};
    memory::Arenas measuring;
    engine::Batches(measuring, shape);
    memory::Ledger ledger;
    memory::Arenas arenas(measuring, ledger);
    engine::Batches batches(arenas, shape);
    for (const Index first : {0, 5}) {
      const model::Batch loaded = batches.load({}, *dataset.training, first);
      const auto loaded_inputs = from_device(loaded.inputs),
                 loaded_targets = from_device(loaded.targets);
      std::vector<Token> inputs(rows), targets(rows);
      dataset.training->batch(first, batch, inputs.data(), targets.data());
      std::map<Token, std::vector<Index>> expected;
      for (Index i = 0; i < rows; ++i) {
        EXPECT_EQ(loaded_inputs[i], inputs[i]);
        EXPECT_EQ(loaded_targets[i], targets[i]);
        expected[inputs[i]].push_back(i);
      }
      const auto order = from_device(loaded.groups[0].order),
                 begin = from_device(loaded.groups[0].begin);
      const auto token = from_device(loaded.groups[0].token);
      std::map<Token, std::vector<Index>> groups;
      for (Index g = 0; g < loaded.groups[0].distinct; ++g) {
        for (Index i = begin[g]; i < begin[g + 1]; ++i) groups[token[g]].push_back(order[i]);
      }
      EXPECT_EQ(loaded.groups[0].distinct, static_cast<Index>(expected.size()));
      EXPECT_EQ(groups, expected);
    }
  }
}

TEST(Batches, HoldDocumentsIfThereIsRoom) {
  const TemporaryFolder folder;
  deck::Config config = small_deck();
  config.data.files = {DocumentNumbers(numbered_documents({5, 4, 13, 1, 9, 2, 7}, 101))
                           .write(folder.path() / "some.docs")};
  config.data.format = deck::DataFormat::documents;
  const data::Dataset dataset = data::open_dataset(config.data, 13, 101, config.train.seed);
  const auto rows = static_cast<std::size_t>(3 * 13);
  const auto measured = [&](bool documents) {
    memory::Arenas measuring;
    engine::Batches(measuring, {.batch = 3, .sequence = 13, .vocab = 101, .documents = documents});
    return measuring;
  };
  memory::Arenas measuring = measured(true);
  constexpr auto io = static_cast<std::size_t>(memory::Category::io);
  EXPECT_EQ(measuring.bytes()[io] - measured(false).bytes()[io], 2 * round_up(3 * 13 * 4, 64));
  memory::Ledger ledger;
  memory::Arenas arenas(measuring, ledger);
  engine::Batches batches(arenas, {.batch = 3, .sequence = 13, .vocab = 101, .documents = true});
  const model::Batch loaded = batches.load({}, *dataset.training, 1);
  std::vector<std::int32_t> begin(rows), end(rows);
  std::vector<Token> inputs(rows), targets(rows);
  dataset.training->batch(1, 3, inputs.data(), targets.data());
  dataset.training->documents(1, 3, inputs.data(), begin.data(), end.data());
  const auto is_equal = [](const auto& found, const auto& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], expected[i]) << i;
  };
  is_equal(from_device(loaded.inputs), inputs);
  is_equal(from_device(loaded.targets), targets);
  is_equal(from_device(loaded.documents.begin), begin);
  is_equal(from_device(loaded.documents.end), end);
  EXPECT_EQ(loaded.weights.extent(0), 0U);
}

TEST(Batches, HoldWeightsIfDocumentsHaveThem) {
  const TemporaryFolder folder;
  deck::Config config = small_deck();
  config.data.format = deck::DataFormat::documents;
  const auto documents = numbered_documents({5, 4, 13, 1, 9, 2, 7}, 101);
  const engine::TokensShape shape{
      .batch = 3, .sequence = 13, .vocab = 101, .documents = true, .weights = true};
  for (const bool weighted : {false, true}) {
    std::vector<float> weights;
    if (weighted) weights = {1, 2, 3, 4, 5, 6, 7};
    config.data.files = {DocumentNumbers(documents, weights).write(folder.path() / "some.docs")};
    const data::Dataset dataset = data::open_dataset(config.data, 13, 101, config.train.seed);
    memory::Arenas measuring;
    engine::Batches(measuring, shape);
    memory::Ledger ledger;
    memory::Arenas arenas(measuring, ledger);
    engine::Batches batches(arenas, shape);
    const model::Batch loaded = batches.load({}, *dataset.training, 1);
    ASSERT_EQ(loaded.weights.extent(0), weighted ? 39U : 0U);
    if (!weighted) continue;
    std::vector<float> expected(39);
    dataset.training->weights(1, 3, expected.data());
    const auto found = from_device(loaded.weights);
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_EQ(found[i], expected[i]) << i;
  }
}

}  // namespace
}  // namespace kzero::tests
