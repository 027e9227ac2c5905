// The sizes of buffers and micro-batches do not change results.
#include <gtest/gtest.h>

#include "support/same_bits.hpp"
#include "support/training.hpp"
#include "tensor/view.hpp"

namespace kzero::tests {
namespace {

struct BucketOutcome {
  std::vector<double> numbers;
  std::vector<float> state;
};

BucketOutcome train(const deck::Config& config, const grid::Group& group) {
  Training training(config, group);
  training.engine->initialise({});
  const auto results = training.run(0, 2);
  return {numbers_of(results), training.state()};
}

class Bucket : public testing::TestWithParam<Dtype> {};

TEST_P(Bucket, AnySizeGivesTheSameBits) {
  const grid::Group group = first_ranks(launch_ranks());
  deck::Config config = small_deck(GetParam());
  config.model.layers = 1, config.model.hidden = 9;  // limits messages when each holds one element
  const BucketOutcome whole = train(config, group);
  // One element too few for the largest unit (1089 = 12 D^2 + 13 D), and a size that is never
  // filled.
  std::vector<Index> sizes = {1088 * bytes_of(GetParam()), Index{1} << 30};
  // One element per rank, and a prime. These are thousands of messages, and each waits for the
  // device, so they are left to hosts.
  if (tensor::on_host) sizes.insert(sizes.end(), {1, 509});
  for (const Index bytes : sizes) {
    config.zero.bucket = bytes;
    const BucketOutcome other = train(config, group);
    EXPECT_TRUE(same_bits(other.numbers, whole.numbers)) << bytes;
    EXPECT_TRUE(same_bits(other.state, whole.state)) << bytes;
  }
}

TEST_P(Bucket, RepeatedRunsGiveTheSameBits) {
  const grid::Group group = first_ranks(launch_ranks());
  const BucketOutcome first = train(small_deck(GetParam()), group);
  const BucketOutcome second = train(small_deck(GetParam()), group);
  EXPECT_TRUE(same_bits(first.numbers, second.numbers));
  EXPECT_TRUE(same_bits(first.state, second.state));
}

TEST_P(Bucket, EveryRankHoldsTheSameWeights) {
  const grid::Group group = first_ranks(launch_ranks());
  const BucketOutcome mine = train(small_deck(GetParam()), group);
  const std::string text(reinterpret_cast<const char*>(mine.state.data()),
                         mine.state.size() * sizeof(float));
  EXPECT_EQ(text, group.broadcast(text));
}

INSTANTIATE_TEST_SUITE_P(Precisions, Bucket, testing::Values(Dtype::fp32, Dtype::bf16, Dtype::fp16),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace kzero::tests
