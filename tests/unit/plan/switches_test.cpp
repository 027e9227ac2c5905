// Each switch for activations saves the bytes given by the formulas in docs/architecture.md, to the
// byte. The sizes are multiples of the arenas' alignment.
#include <gtest/gtest.h>

#include "deck/rules.hpp"
#include "model/residual_stream.hpp"
#include "plan/plan.hpp"

namespace kzero::plan {
namespace {

using deck::Offload;
using deck::RecomputeMode;

constexpr Index layers = 5, D = 128, H = 8, T = 64, B = 4, N = B * T, F = 4 * D, width = 2;

struct Switches {
  Index tensor = 1;
  bool sequence_parallel = false;
  deck::Recompute recompute{};
};

Index bytes_of(const Switches& s, const std::string& category) {
  deck::Config config;
  config.model.layers = layers, config.model.hidden = D, config.model.heads = H;
  config.model.sequence = T;
  config.model.sequence_parallel = s.sequence_parallel;
  config.grid.tensor = s.tensor;
  config.recompute = s.recompute;
  config.train.global_batch = config.train.micro_batch = B;
  config.train.precision = Dtype::bf16;
  deck::resolve(config, {s.tensor, deck::Purpose::plan});
  for (const metrics::CategoryBytes& row : plan(config, 1).memory) {
    if (row.name == category) return row.planned_bytes;
  }
  return 0;
}

/// A block's GEMMs and attention on one of t ranks, with n rows of the stream.
constexpr Index products(Index t, Index n) {
  return width * (N * (3 * D + D + F) / t + n * D) + 4 * N * H / t;
}
/// The outputs of elementwise and row passes: two LayerNorms with two statistics each, and GELU.
constexpr Index passes(Index t, Index n) { return width * (2 * n * D + N * F / t) + 4 * 4 * n; }
/// The final LayerNorm.
constexpr Index head(Index n) { return width * n * D + 2 * 4 * n; }

TEST(Switches, RecomputationKeepsOnePlaceForAllBlocks) {
  const Index one = products(1, N) + passes(1, N), input = width * N * D;
  EXPECT_EQ(bytes_of({}, "activations"), layers * one + (layers + 1) * input + head(N));
  const deck::Recompute layernorm_gelu{.mode = RecomputeMode::layernorm_gelu};
  EXPECT_EQ(bytes_of({}, "activations") - bytes_of({.recompute = layernorm_gelu}, "activations"),
            (layers - 1) * passes(1, N));
  const deck::Recompute full{.mode = RecomputeMode::full};
  EXPECT_EQ(bytes_of({.recompute = full}, "activations"), one + input + head(N));
  EXPECT_EQ(bytes_of({.recompute = full}, "recompute"), layers * input);
}

TEST(Switches, TensorParallelismCutsProductsAndSequenceParallelismTheRest) {
  for (const Index t : {2, 4, 8}) {
    const Index input = width * N * D;
    EXPECT_EQ(bytes_of({.tensor = t}, "activations"),
              layers * (products(t, N) + passes(t, N)) + (layers + 1) * input + head(N));
    const Index n = N / t;
    EXPECT_EQ(bytes_of({.tensor = t, .sequence_parallel = true}, "activations"),
              layers * (products(t, n) + passes(t, n)) + (layers + 1) * input / t + head(n));
    EXPECT_EQ(bytes_of({.tensor = t, .sequence_parallel = true}, "activations") * t,
              bytes_of({}, "activations"));
  }
}

TEST(Switches, PartitioningDividesCheckpointsByTheTensorRanks) {
  for (const Index t : {2, 4, 8}) {
    const Index input = width * N * D, place = products(t, N) + passes(t, N) + head(N);
    const deck::Recompute whole{.mode = RecomputeMode::full};
    EXPECT_EQ(bytes_of({t, false, whole}, "recompute"), layers * input);
    EXPECT_EQ(bytes_of({t, false, whole}, "activations"), place + input);
    const deck::Recompute cut{.mode = RecomputeMode::full, .partition = true};
    EXPECT_EQ(bytes_of({t, false, cut}, "recompute"), layers * input / t);
    EXPECT_EQ(bytes_of({t, false, cut}, "activations"), place + input);
    const deck::Recompute host{
        .mode = RecomputeMode::full, .partition = true, .offload = Offload::host};
    EXPECT_EQ(bytes_of({t, false, host}, "recompute"), 0);
    EXPECT_EQ(bytes_of({t, false, host}, "offloaded") - bytes_of({}, "offloaded"),
              layers * input / t);
    EXPECT_EQ(bytes_of({t, false, host}, "activations"), place + model::offload_places * input);
  }
}

// C_B: no buffer grows with the model's depth, and zero.bucket limits the message buffers.
TEST(Switches, BuffersDoNotGrowWithTheModel) {
  deck::Config config;
  config.model.layers = 2;
  config.grid.tensor = 2;
  config.zero.bucket = 65536;
  config.train.global_batch = 4;
  deck::resolve(config, {4, deck::Purpose::plan});
  const Entry shallow = plan(config, 1);
  config.model.layers = 60;
  const Entry deep = plan(config, 1);
  for (std::size_t i = 0; i < shallow.memory.size(); ++i) {
    const std::string& name = shallow.memory[i].name;
    if (name != "buckets" && name != "workspace" && name != "io") continue;
    EXPECT_EQ(shallow.memory[i].planned_bytes, deep.memory[i].planned_bytes) << name;
    if (name == "buckets") {
      EXPECT_LE(deep.memory[i].planned_bytes, 2 * 65536)
          << "one each for the data and tensor groups";
    }
  }
}

}  // namespace
}  // namespace kzero::plan
