#include <gtest/gtest.h>
#include <mpi.h>

#include <cmath>
#include <map>
#include <set>

#include "support/host_shards.hpp"
#include "support/same_bits.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

std::vector<float> initial_state(const deck::Config& config, const grid::Group& group) {
  Training training(config, group);
  training.engine->initialise({});
  return training.state();
}

deck::Config deck_with(std::uint64_t seed, Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.train.seed = seed;
  return config;
}

TEST(InitialWeights, AreAFunctionOfTheSeedAlone) {
  const grid::Group all = first_ranks(launch_ranks());
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm alone = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank, 0, &alone);
  const grid::Group single(alone, "data");
  const auto on_one = initial_state(deck_with(7), single);
  EXPECT_TRUE(same_bits(initial_state(deck_with(7), all), on_one)) << "other ranks";
  EXPECT_TRUE(same_bits(initial_state(deck_with(7, Dtype::bf16), all), on_one))
      << "another precision";
  EXPECT_FALSE(same_bits(initial_state(deck_with(8), all), on_one)) << "another seed";
}

TEST(InitialWeights, FollowTheirLawAndMomentsAreZero) {
  const grid::Group group = first_ranks(launch_ranks());
  Training training(deck_with(7), group);
  training.engine->initialise({});
  std::map<std::string, param::ParamSpec> specs;
  for (const auto& unit : training.engine->blueprint().table) {
    for (const auto& p : unit.params) specs[p.name] = p;
  }
  for (const checkpoint::StateShard& shard : HostShards(training.engine->local_shards())) {
    const param::ParamSpec& p = specs.at(shard.parameter);
    const auto master = shard.values("master"), first = shard.values("first_moment"),
               second = shard.values("second_moment");
    ASSERT_EQ(static_cast<Index>(master.size()), p.elements());
    ASSERT_TRUE(first.size() == master.size() && second.size() == master.size());
    double squares = 0;
    for (std::size_t i = 0; i < master.size(); ++i) {
      ASSERT_EQ(first[i], 0);
      ASSERT_EQ(second[i], 0);
      if (p.init != param::Init::normal) {
        ASSERT_EQ(master[i], p.init == param::Init::ones ? 1.0F : 0.0F);
      }
      squares += static_cast<double>(master[i]) * master[i];
    }
    if (p.init != param::Init::normal) continue;
    // The sum of n squares of standard normal numbers has mean n and variance 2 n. The bound is six
    // standard deviations.
    const auto n = static_cast<double>(p.elements());
    EXPECT_NEAR(squares / (p.std * p.std), n, 6 * std::sqrt(2 * n)) << p.name;
  }
}

TEST(InitialWeights, NoTwoParametersShareTheirDraws) {
  const grid::Group group = first_ranks(launch_ranks());
  Training training(deck_with(7), group);
  training.engine->initialise({});
  std::set<float> first;
  std::size_t matrices = 0;
  for (const checkpoint::StateShard& shard : HostShards(training.engine->local_shards())) {
    if (!shard.parameter.ends_with(".weight") || shard.parameter.find("ln_") != std::string::npos)
      continue;
    ++matrices;
    first.insert(shard.values("master").front());
  }
  EXPECT_EQ(first.size(), matrices);
}

}  // namespace
}  // namespace kzero::tests
