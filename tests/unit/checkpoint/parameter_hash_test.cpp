// The hash of all parameters is part of the file format.
#include "checkpoint/format/parameter_hash.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace kzero::checkpoint {

namespace {

/// Three ranges of the third parameter of a model.
struct Example {
  Example() {
    for (int i = 0; i < 9; ++i) {
      master[i] = 0.5F * static_cast<float>(i) - 1;
      first[i] = static_cast<float>(i * i);
      second[i] = std::ldexp(1.0F, -i);
    }
  }

  std::vector<float> master = std::vector<float>(9), first = master, second = master;
  StateShard shard{"wpe.weight",
                   {{5, 3}, {40, 5}, {90, 1}},
                   {{"master", master}, {"first_moment", first}, {"second_moment", second}}};
};

TEST(ParameterHash, IsThatOfTheFormat) {
  const Example example;
  EXPECT_EQ(hash_of(example.shard, 2), 0x8B068CF90C1CE831U);  // computed in Python
}

TEST(ParameterHash, OfFiveArraysIsThatOfTheFormat) {
  Example example;
  std::vector<float> slow(9), average(9);
  for (int i = 0; i < 9; ++i) {
    slow[i] = 3.0F - static_cast<float>(i);
    average[i] = 0.25F * static_cast<float>(i);
  }
  example.shard.arrays.push_back({"slow_moment", slow});
  example.shard.arrays.push_back({"average", average});
  EXPECT_EQ(hash_of(example.shard, 2), 0x594F85E1F125D7C1U);  // computed in Python
  average[8] = 2.5F;
  EXPECT_NE(hash_of(example.shard, 2), 0x594F85E1F125D7C1U);
}

TEST(ParameterHash, IsTheSameInAnySteps) {
  const Example example;
  const std::uint64_t whole = hash_of(example.shard, 2);
  for (Index step = 1; step <= 9; ++step) {
    StateShardHash hash(example.shard, 2);
    EXPECT_EQ(hash.value(), 0U);
    for (BlockReader blocks(nullptr, example.shard.arrays, step); const auto block = blocks.next();)
      hash.add(*block);
    EXPECT_EQ(hash.value(), whole) << step;
  }
}

}  // namespace

}  // namespace kzero::checkpoint
