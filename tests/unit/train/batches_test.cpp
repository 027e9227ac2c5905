#include "train/batches.hpp"

#include <gtest/gtest.h>

#include <map>

#include "support/training.hpp"

namespace kzero::tests {
namespace {

TEST(Batches, HoldTheSamplersTokensGroupedInTheOrderOfTheBatch) {
  const deck::Config config = small_deck();
  const data::Dataset dataset = data::open_dataset(config.data, 13, config.train.seed);
  for (const Index batch : {1, 3, 8}) {
    const Index rows = batch * 13;
    memory::Arenas measuring;
    train::Batches(measuring, batch, 13, 101);
    memory::Ledger ledger;
    memory::Arenas arenas(measuring, ledger);
    train::Batches batches(arenas, batch, 13, 101);
    for (const Index first : {0, 5}) {
      const model::Batch loaded = batches.load({}, *dataset.training, first);
      Kokkos::fence();
      std::vector<Token> inputs(rows), targets(rows);
      dataset.training->batch(first, batch, inputs.data(), targets.data());
      std::map<Token, std::vector<Index>> expected;
      for (Index i = 0; i < rows; ++i) {
        EXPECT_EQ(loaded.inputs(i), inputs[i]);
        EXPECT_EQ(loaded.targets(i), targets[i]);
        expected[inputs[i]].push_back(i);
      }
      std::map<Token, std::vector<Index>> groups;
      for (Index g = 0; g < loaded.groups.distinct; ++g) {
        for (Index i = loaded.groups.begin(g); i < loaded.groups.begin(g + 1); ++i) {
          groups[loaded.groups.token(g)].push_back(loaded.groups.order(i));
        }
      }
      EXPECT_EQ(loaded.groups.distinct, static_cast<Index>(expected.size()));
      EXPECT_EQ(groups, expected);
    }
  }
}

}  // namespace
}  // namespace kzero::tests
