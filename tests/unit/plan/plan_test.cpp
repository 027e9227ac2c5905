// Plans of decks, in a process that starts neither MPI nor Kokkos. tests/unit/app checks that the
// numbers equal the run's.
#include <gtest/gtest.h>
#include <mpi.h>

#include <Kokkos_Core.hpp>
#include <nlohmann/json.hpp>

#include "deck/rules.hpp"
#include "memory/ledger.hpp"
#include "model/transformer_definition.hpp"
#include "plan/rates.hpp"
#include "plan/report.hpp"
#include "support/toy_model.hpp"
#include "tensor/view.hpp"

namespace kzero::plan {
namespace {

using Json = nlohmann::json;

deck::Config deck_for(Index ranks, Dtype precision = Dtype::fp32) {
  deck::Config config;
  config.model.hidden = 60, config.model.heads = 3, config.model.vocab = 301;
  config.train.global_batch = 24, config.train.precision = precision;
  config.zero.stage = 0;
  deck::resolve(config, {.ranks = ranks});
  return config;
}

TEST(Plan, NeedsNeitherMpiNorKokkos) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16, Dtype::fp16}) {
    const Entry entry = plan(deck_for(4, precision), 2);
    EXPECT_EQ(entry.memory.size() + (tensor::on_host ? 1 : 0), memory::category_count)
        << "only micro-batches on their way to a device are offloaded";
    EXPECT_GT(entry.total_bytes(), 16 * entry.parameters) << name_of(precision);
  }
  int mpi = 1;
  MPI_Initialized(&mpi);
  EXPECT_EQ(mpi, 0);
  EXPECT_FALSE(Kokkos::is_initialized());
}

TEST(Plan, CountsTokensBeyondTheRangeOfIntegers) {
  deck::Config config = deck_for(1);
  config.model.sequence = 1000000;
  config.train.steps = 1000000000;
  config.train.global_batch = 1000000, config.train.micro_batch = 1;
  const Entry entry = plan(config, 1);
  EXPECT_EQ(entry.run_tokens, 1e21);
  EXPECT_EQ(Json::parse(json(std::vector{entry}))[0]["run_tokens"], 1e21);
  config.train.phases = {{999999999, 1}};
  EXPECT_NEAR(plan(config, 1).run_tokens, 1e21, 2e12);
  config.train.steps = 3, config.train.phases = {{1, 2}}, config.train.global_batch = 1;
  EXPECT_NE(json(std::vector{plan(config, 1)}).find("\"run_tokens\": 5000000,"), std::string::npos);
}

TEST(Plan, SaysThatItsTablesShowTheFirstPhase) {
  deck::Config config = deck_for(1);
  const std::string note = "traffic and times are those of the first phase";
  const Entry plain = plan(config, 1);
  EXPECT_EQ(table(std::vector{plain, plain}).find(note), std::string::npos);
  config.train.phases = {{50, 48}};
  Entry entry = plan(config, 1);
  entry.estimate.emplace().model = 1;
  const std::string one = table(std::vector{entry});
  EXPECT_NE(one.find(note), std::string::npos);
  EXPECT_EQ(one.find("note "), std::string::npos);
  const Fit fit{{{Search::micro_batch, entry}}, {}};
  for (const std::string& many : {table(std::vector{entry, entry}),
                                  table(std::vector{Proposal{entry, {}}}), table(std::vector{fit})})
    EXPECT_NE(many.find("note        the deck has [[train.phase]]: " + note), std::string::npos)
        << many;
}

// AdamW has 12 bytes for each parameter. Plans with NCCL are of devices.
TEST(Plan, CountsOffloadedStateOnTheHostOfADevice) {
  if (!tensor::on_host) GTEST_SKIP() << "always of devices";
  deck::Config config = deck_for(4, Dtype::bf16);
  config.run.communicator = deck::CommunicatorKind::nccl;
  const Entry here = plan(config, 1);
  config.zero.offload = deck::Offload::host;
  const Entry there = plan(config, 1);
  EXPECT_GE(here.device_bytes() - there.device_bytes(), 12 * here.parameters);
  EXPECT_GE(there.total_bytes() - there.device_bytes(), 12 * here.parameters);
  EXPECT_TRUE(there.work.updates_on_host);
  EXPECT_NEAR(there.work.optimizer_bytes, here.work.optimizer_bytes,
              0.01 * here.work.optimizer_bytes);
  config.run.communicator = deck::CommunicatorKind::mpi;
  EXPECT_EQ(plan(config, 1).total_bytes(), plan(config, 1).device_bytes());
}

// A ring, and a receiver for every other rank of the node or for the ranks of other nodes: each 16
// channels of 9.1875 MiB.
TEST(Plan, EstimatesTheBuffersOfNccl) {
  constexpr Index connection = 16 * (Index{9408} << 10);
  deck::Config config = deck_for(4);
  config.run.communicator = deck::CommunicatorKind::mpi;
  EXPECT_EQ(plan(config, 1).nccl_bytes, 0);
  config.run.communicator = deck::CommunicatorKind::nccl;
  const Entry entry = plan(config, 1);
  EXPECT_EQ(entry.nccl_bytes, (1 + 3) * connection);
  const std::vector<Entry> entries{entry};
  EXPECT_NE(table(entries).find("  588.00 MiB more, estimated\n"), std::string::npos)
      << table(entries);
  EXPECT_EQ(Json::parse(json(entries))[0]["nccl_bytes_estimate"], entry.nccl_bytes);
  config.placement.node_of_rank = {0, 0, 1, 1}, config.placement.data_nodes = 2;
  EXPECT_EQ(plan(config, 1).nccl_bytes, (1 + 1 + 1) * connection);
  config = deck_for(1);
  config.run.communicator = deck::CommunicatorKind::nccl;
  EXPECT_EQ(plan(config, 1).nccl_bytes, 0);
}

TEST(Plan, CountsEveryParameterOnce) {
  const deck::Config config = deck_for(4);
  EXPECT_EQ(plan(config, 1).parameters, param::elements_of(model::parameter_table(config.model)));
}

// Rank 4 on c_attn of 4 blocks of width 60: 4 (60 + 180) parameters each.
TEST(Plan, SaysWhatAdaptersTrainAndWhatIsFrozen) {
  deck::Config config = deck_for(4, Dtype::bf16);
  const Entry plain = plan(config, 1);
  EXPECT_EQ(plain.trained_parameters, plain.parameters);
  EXPECT_EQ(plain.frozen_bytes, 0);
  config.lora = {.rank = 4, .alpha = 8, .targets = {"c_attn"}};
  const Entry entry = plan(config, 1);
  EXPECT_EQ(entry.trained_parameters, 4 * 4 * (60 + 180));
  EXPECT_EQ(entry.parameters, plain.parameters + entry.trained_parameters);
  EXPECT_GE(entry.frozen_bytes, 2 * plain.parameters);
  EXPECT_LE(entry.frozen_bytes, 2 * (plain.parameters + 6 * 4 * 64));
  const std::vector<Entry> entries{entry};
  EXPECT_NE(table(entries).find("adapters    3840 parameters train; "), std::string::npos)
      << table(entries);
  EXPECT_EQ(Json::parse(json(entries))[0]["trained_parameters"], 3840);
}

// On the fourth tensor rank: the weights of 5 norms, the head norms, and the KV head that the third
// rank also holds.
TEST(Plan, SaysWhatTensorRanksHoldTwice) {
  deck::Config config = deck_for(4);
  EXPECT_EQ(plan(config, 1).copied_parameters, 0);
  deck::Model& m = config.model;
  m.family = deck::ModelFamily::llama;
  m.layers = 2, m.heads = 4, m.kv_heads = 2, m.head_dim = 16, m.qk_norm = m.qkv_bias = true;
  config.grid = {.data = 1, .tensor = 4};
  deck::resolve(config, {.ranks = 4});
  const Entry entry = plan(config, 1);
  EXPECT_EQ(entry.copied_parameters, 5 * 60 + 2 * (2 * 16 + 2 * 16 * (60 + 1)));
  EXPECT_NE(table(std::vector<Entry>{entry}).find("\ncopies      4268 parameters"),
            std::string::npos)
      << table(std::vector<Entry>{entry});
}

TEST(Plan, OfAnotherFamilyFollowsItsDefinition) {
  const deck::Config config = deck_for(4, Dtype::bf16);
  const Entry entry = plan(config, 1, tests::define_toy);
  EXPECT_EQ(entry.parameters, 2 * 301 * 60 + 301);
  EXPECT_DOUBLE_EQ(entry.work.operations, 24.0 / 4 * 128 * 6 * 60 * 301);
  EXPECT_EQ(entry.work.recomputed_operations, 0);
  const Index rows = config.train.micro_batch * 128;
  const auto position = memory::position(memory::Category::activations);
  EXPECT_EQ(entry.memory[position].planned_bytes, rows * 60 * 2) << "x in bf16";
}

TEST(Plan, MoreThreadsNeedMoreWorkspaceOnly) {
  const Entry one = plan(deck_for(2), 1), two = plan(deck_for(2), 2);
  for (std::size_t i = 0; i < one.memory.size(); ++i) {
    const bool grows = tensor::on_host && one.memory[i].name == "workspace";
    EXPECT_EQ(two.memory[i].planned_bytes > one.memory[i].planned_bytes, grows)
        << one.memory[i].name;
  }
}

TEST(Plan, TrafficIsTheorysInTheRunsPrecision) {
  EXPECT_TRUE(plan(deck_for(1), 1).traffic.empty());
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16}) {
    const Entry entry = plan(deck_for(4, precision), 1);
    ASSERT_EQ(entry.traffic.size(), 2U);
    Index elements = 0;
    for (const metrics::TrafficRow& row : entry.traffic) {
      EXPECT_EQ(row.elements_per_step, row.expected_elements_per_step);
      EXPECT_EQ(row.bytes_per_step, row.elements_per_step * bytes_of(precision));
      elements += row.elements_per_step;
    }
    // 2 P (N - 1) / N, where each of the six units is padded to shards of a multiple of 64.
    const double min = 2 * static_cast<double>(entry.parameters) * 3 / 4;
    EXPECT_GE(static_cast<double>(elements), min);
    EXPECT_LE(static_cast<double>(elements), min + 2 * 6 * 4 * 64);
    EXPECT_EQ(entry.sent_bytes(), elements * bytes_of(precision));
  }
}

TEST(Time, IsArithmeticAndUpdateAndMessages) {
  const Rates rates{2e12, 4e9, 5e8};
  const Estimate e =
      estimate({.operations = 1e12, .optimizer_bytes = 1e9, .sent_bytes = 1e9}, rates);
  EXPECT_DOUBLE_EQ(e.model, 0.5);
  EXPECT_DOUBLE_EQ(e.optimizer, 0.25);
  EXPECT_DOUBLE_EQ(e.messages, 2);
  EXPECT_DOUBLE_EQ(e.seconds(), 2.75);
}

TEST(Time, ARankDoesItsShareOfTheTokensAndUpdatesWhatItHolds) {
  for (const Dtype precision : {Dtype::fp32, Dtype::bf16}) {
    const deck::Config config = deck_for(4, precision);
    const Entry entry = plan(config, 1);
    const double tokens = 24.0 / 4 * static_cast<double>(config.model.sequence);
    EXPECT_DOUBLE_EQ(entry.work.operations,
                     tokens * model::flops_per_token(model::define(config)->training_trace()));
    EXPECT_DOUBLE_EQ(entry.work.sent_bytes, static_cast<double>(entry.sent_bytes()));
    // 28 bytes per parameter in both precisions. The units' alignment adds a little.
    const double update = 28 * static_cast<double>(entry.parameters);
    EXPECT_GE(entry.work.optimizer_bytes, update);
    EXPECT_LE(entry.work.optimizer_bytes, update * 1.01);
  }
}

// Four of five blocks are recomputed, without their final GEMM. MFU's operations are unchanged.
TEST(Time, CountsWhatIsComputedAgain) {
  deck::Config config = deck_for(4, Dtype::bf16);
  config.model.layers = 5;
  const Work none = plan(config, 1).work;
  const double tokens = 24.0 / 4 * 128, d = 60, f = 240;
  using deck::RecomputeMode;
  config.recompute.mode = RecomputeMode::layernorm_gelu;
  const Work layernorm_gelu = plan(config, 1).work;
  EXPECT_DOUBLE_EQ(layernorm_gelu.recomputed_bytes, tokens * 4 * 2 * (2 * d + 2 * d + 2 * f));
  config.recompute.mode = RecomputeMode::full;
  const Work full = plan(config, 1).work;
  EXPECT_DOUBLE_EQ(full.recomputed_operations,
                   tokens * 4 * 2 * (3 * d * d + d * d + d * f + 128 * d));
  config.recompute.offload = deck::Offload::host;
  const Work host = plan(config, 1).work;
  EXPECT_DOUBLE_EQ(host.offloaded_bytes, tokens * 5 * 2 * 4 * d) << "to the host and back";
  EXPECT_EQ(host.recomputed_bytes, 0);
  EXPECT_EQ(host.recomputed_operations, full.recomputed_operations);
  EXPECT_EQ(none.recomputed_operations + none.recomputed_bytes, 0);
  EXPECT_EQ(layernorm_gelu.recomputed_operations + full.recomputed_bytes, 0);
  for (const Work& work : {layernorm_gelu, full, host}) EXPECT_EQ(work.operations, none.operations);
  const Estimate e = estimate(host, {1e12, 1e10, 1e9});
  EXPECT_DOUBLE_EQ(e.recompute, host.recomputed_operations / 1e12 + host.offloaded_bytes / 1e10);
  const Rates with_link{1e12, 1e10, 1e9, {.copied_bytes = 1e9}};
  EXPECT_DOUBLE_EQ(estimate(host, with_link).recompute, host.recomputed_operations / 1e12)
      << "the replay has the copies";
  EXPECT_DOUBLE_EQ(e.seconds(), e.model + e.recompute + e.optimizer + e.messages);
}

TEST(Table, NamesTheRecomputation) {
  deck::Config config = deck_for(2);
  EXPECT_EQ(table(std::vector{plan(config, 1)}).find("recompute"), std::string::npos);
  config.recompute.mode = deck::RecomputeMode::full;
  Entry entry = plan(config, 1);
  entry.estimate = estimate(entry.work, {1e9, 1e10, 1e9});
  const std::string text = table(std::vector{entry});
  EXPECT_NE(text.find("micro-batch 12, recompute full\n"), std::string::npos) << text;
  EXPECT_NE(text.find(", recompute "), text.rfind(", recompute ")) << "in the estimate too";
  EXPECT_EQ(Json::parse(json(std::vector{entry}))[0].at("recompute"), "full");
}

TEST(Rates, GivenOnesAreTakenAsTheyAre) {
  const RateSource source({1e12, 2e9, 3e9}, deck_for(1), 8, false);
  const Rates rates = source.of_rank(2);
  EXPECT_EQ(rates.operations, 1e12);
  EXPECT_EQ(rates.memory_bytes, 2e9);
  EXPECT_EQ(rates.sent_bytes, 3e9);
}

TEST(Rates, MeasuredMemoryIsSharedByThreads) {
  const RateSource source({1e12, std::nullopt, std::nullopt}, deck_for(1), 2, false);
  EXPECT_GT(source.of_rank(2).memory_bytes, 0);
  EXPECT_DOUBLE_EQ(source.of_rank(2).memory_bytes, 2 * source.of_rank(1).memory_bytes);
  EXPECT_GT(source.of_rank(1).sent_bytes, 0);
  EXPECT_EQ(source.of_rank(2).sent_bytes, source.of_rank(1).sent_bytes);
  EXPECT_DOUBLE_EQ(source.of_rank(2, 0.5).memory_bytes, source.of_rank(1).memory_bytes);
  EXPECT_DOUBLE_EQ(source.of_rank(2, 0.5).sent_bytes, 0.5 * source.of_rank(2).sent_bytes);
}

TEST(Json, HoldsTheFieldsThatProgramsReadByName) {
  Entry entry = plan(deck_for(4, Dtype::bf16), 2);
  entry.estimate = estimate(entry.work, {1e12, 1e10, 1e9});
  const Json all = Json::parse(json(std::vector{entry}));
  ASSERT_EQ(all.size(), 1U);
  const Json& found = all[0];
  EXPECT_EQ(found.at("ranks"), 4);
  EXPECT_EQ(found.at("grid"), (Json{{"data", 4}, {"tensor", 1}}));
  EXPECT_EQ(found.at("stage"), 0);
  EXPECT_EQ(found.at("parameters"), entry.parameters);
  EXPECT_EQ(found.at("total_bytes"), entry.total_bytes());
  EXPECT_EQ(found.at("step_seconds_estimate"), entry.estimate->seconds());
  EXPECT_EQ(found.at("threads"), 2);
  EXPECT_EQ(found.at("precision"), "bf16");
  EXPECT_EQ(found.at("micro_batch"), 6);
  Index total = 0;
  for (const auto& [name, bytes] : found.at("memory").items()) total += bytes.get<Index>();
  EXPECT_EQ(total, entry.total_bytes());
  for (std::size_t i = 0; i < 2; ++i) {
    const metrics::TrafficRow& row = entry.traffic[i];
    EXPECT_EQ(found.at("traffic").at(i),
              (Json{{"group", row.group},
                    {"operation", row.operation},
                    {"purpose", row.purpose},
                    {"elements_per_step", row.elements_per_step},
                    {"bytes_per_step", row.bytes_per_step},
                    {"expected_elements_per_step", row.expected_elements_per_step},
                    {"bytes_between_nodes_per_step", 0},
                    {"expected_bytes_between_nodes_per_step", 0}}));
  }
}

TEST(Json, SaysNullWhereNoTimeIsKnown) {
  const Json all = Json::parse(json(std::vector{plan(deck_for(1), 1)}));
  EXPECT_TRUE(all.at(0).at("step_seconds_estimate").is_null());
  EXPECT_EQ(all.at(0).at("traffic"), Json::array());
}

TEST(Table, ShowsOneEntryInFullAndSeveralALineEach) {
  const Entry entry = plan(deck_for(4), 1);
  const std::string one = table(std::vector{entry});
  for (const char* part : {"activations", "sum", "reduce_scatter", "4 data x 1 tensor"})
    EXPECT_NE(one.find(part), std::string::npos) << one;
  const std::string two = table(std::vector{entry, plan(deck_for(2), 1)});
  EXPECT_EQ(std::ranges::count(two, '\n'), 4) << two;
}

}  // namespace
}  // namespace kzero::plan
