// Ranks of a node share stage 3's parameters in memory. No rank may read what a slower one has not
// updated yet, so the bits are those of stage 0 even if one rank is late in each step.
#include <gtest/gtest.h>

#include <fmt/format.h>
#include <mpi.h>

#include <chrono>
#include <memory>
#include <thread>

#include "support/full_result.hpp"
#include "support/momentum_sgd.hpp"

namespace kzero::tests {
namespace {

int rank_of_launch() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

/// In step n, rank n modulo the ranks sleeps before it updates a unit.
class LateSgd : public optim::Optimizer {
 public:
  std::string_view kind() const override { return inner_.kind(); }
  const param::StateArrays& state() const override { return inner_.state(); }

  void update(const optim::Place& place, const optim::Update& update,
              const optim::AnyShare& share) const override {
    if (update.number % launch_ranks() == rank_of_launch())
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    inner_.update(place, update, share);
  }

 private:
  MomentumSgd inner_;
};

class SharedParameters : public testing::TestWithParam<std::tuple<Dtype, Index>> {};

TEST_P(SharedParameters, AreReadAfterTheLastRankHasUpdatedThem) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const auto [precision, tensor] = GetParam();
  const int ranks = launch_ranks();
  if (ranks % tensor != 0) GTEST_SKIP() << "tensor groups need all ranks";
  const grid::Group group = first_ranks(ranks);
  deck::Config config = small_deck(precision);
  config.model.layers = 1, config.optimizer.lr = 0.05;
  config.model.hidden = 16, config.model.heads = 4;
  config.grid.tensor = tensor;
  const auto result = [&](std::shared_ptr<const optim::Optimizer> optimizer) {
    Training training(config, group, deck::GemmBackend::automatic,
                      {.optimizer = std::move(optimizer)});
    return full_result(training, group, 4);
  };
  const FullResult expected = result(momentum_sgd());
  config.zero.stage = 3, config.zero.parameters = deck::SharesParameters::node;
  for (const Index node : {Index{ranks}, 2 * tensor}) {
    if (ranks % node != 0) continue;
    config.grid.node = node;
    for (const auto overlap : {deck::Overlap::off, deck::Overlap::on}) {
      config.zero.overlap = overlap;
      expect_same(result(std::make_shared<LateSgd>()), expected,
                  fmt::format("{} ranks a node", node));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Grids, SharedParameters,
                         testing::Combine(testing::Values(Dtype::fp32, Dtype::bf16),
                                          testing::Values(1, 2)),
                         [](const auto& test) {
                           return fmt::format("{}_tensor{}", name_of(std::get<0>(test.param)),
                                              std::get<1>(test.param));
                         });

}  // namespace
}  // namespace kzero::tests
