#include "engine/batches.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/device_memory.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

TEST(Batches, HoldTheSamplersTokensGroupedInTheOrderOfTheBatch) {
  const deck::Config config = small_deck();
  const data::Dataset dataset = data::open_dataset(config.data, 13, 101, config.train.seed);
  for (const Index batch : {1, 3, 8}) {
    const Index rows = batch * 13;
    memory::Arenas measuring;
    engine::Batches(measuring, batch, 13, 101);
    memory::Ledger ledger;
    memory::Arenas arenas(measuring, ledger);
    engine::Batches batches(arenas, batch, 13, 101);
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
      const auto order = from_device(loaded.groups.order), begin = from_device(loaded.groups.begin);
      const auto token = from_device(loaded.groups.token);
      std::map<Token, std::vector<Index>> groups;
      for (Index g = 0; g < loaded.groups.distinct; ++g) {
        for (Index i = begin[g]; i < begin[g + 1]; ++i) groups[token[g]].push_back(order[i]);
      }
      EXPECT_EQ(loaded.groups.distinct, static_cast<Index>(expected.size()));
      EXPECT_EQ(groups, expected);
    }
  }
}

}  // namespace
}  // namespace kzero::tests
