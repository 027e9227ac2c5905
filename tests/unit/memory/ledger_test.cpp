#include "memory/ledger.hpp"

#include <gtest/gtest.h>

namespace kzero::memory {

namespace {

TEST(Ledger, KeepsPeaksByCategory) {
  Ledger ledger;
  ledger.add(Category::buckets, 100);
  ledger.add(Category::buckets, 50);
  ledger.remove(Category::buckets, 120);
  ledger.add(Category::buckets, 40);
  ledger.add(Category::io, 7);
  EXPECT_EQ(ledger.now(Category::buckets), 70);
  EXPECT_EQ(ledger.peak(Category::buckets), 150);
  EXPECT_EQ(ledger.peak(Category::io), 7);
  EXPECT_EQ(ledger.peak(Category::parameters), 0);
  EXPECT_EQ(ledger.peaks()[position(Category::buckets)], 150);
}

TEST(Categories, HaveTheirNamesInOrder) {
  EXPECT_EQ(name_of(Category::parameters), "parameters");
  EXPECT_EQ(name_of(Category::gradients), "gradients");
  EXPECT_EQ(name_of(Category::optimizer), "optimizer");
  EXPECT_EQ(name_of(Category::activations), "activations");
  EXPECT_EQ(name_of(Category::recompute), "recompute");
  EXPECT_EQ(name_of(Category::buckets), "buckets");
  EXPECT_EQ(name_of(Category::workspace), "workspace");
  EXPECT_EQ(name_of(Category::io), "io");
}

}  // namespace

}  // namespace kzero::memory
