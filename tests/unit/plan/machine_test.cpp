// Machine files: the accepted keys, the refused keys with their locations, and the rates of a plan.
#include "plan/machine.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "comm/placement.hpp"
#include "deck/rules.hpp"
#include "plan/report.hpp"
#include "plan/step_time.hpp"

namespace kzero::plan {
namespace {

const std::string good = R"([rank]
tflops = 125
memory_bandwidth = "800GB"
[attained]
1000 = 0.2
3000 = 0.6
[node]
ranks = 4
bandwidth = "100GB"
[network]
rank_bandwidth = "10GB"
node_bandwidth = "32GB"
)";

Machine machine() { return read_machine({"m.toml", good}); }

std::string replaced(std::string_view part, std::string_view by) {
  std::string text = good;
  return text.replace(text.find(part), part.size(), by);
}

std::string message_of(const std::string& text) {
  try {
    read_machine({"m.toml", text});
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    return error.what();
  }
  return "read without a complaint";
}

Entry entry_of(Index data, Index tensor, deck::ReductionOrder reduction) {
  deck::Config config;
  config.model.hidden = 2000, config.model.heads = 4, config.model.layers = 1;
  config.grid = {.data = data, .tensor = tensor};
  config.train.global_batch = data, config.zero.stage = 2;
  config.zero.reduction = reduction;
  config.run.communicator = reduction == deck::ReductionOrder::library
                                ? deck::CommunicatorKind::nccl
                                : deck::CommunicatorKind::mpi;
  deck::resolve(config, {.ranks = data * tensor});
  const Index ranks = data * tensor;
  config.placement = comm::placement_on(comm::filled_nodes(ranks, 4), config, ranks);
  return plan(config, 1);
}

TEST(MachineFile, IsReadInItsUnits) {
  const Machine m = machine();
  EXPECT_EQ(m.name, "m.toml");
  EXPECT_EQ(m.operations, 125e12);
  EXPECT_EQ(m.memory_bytes, 800e9);
  EXPECT_EQ(m.network.node_ranks, 4);
  EXPECT_EQ(m.network.within_node, 100e9);
  EXPECT_EQ(m.network.rank_between, 10e9);
  EXPECT_EQ(m.network.node_between, 32e9);
  EXPECT_EQ(m.network.within_latency, 1e-6) << "the default";
  EXPECT_EQ(m.network.between_latency, 5e-6) << "the default";
  const Network slow = read_machine({"m.toml", good + "latency = 40\n"}).network;
  EXPECT_DOUBLE_EQ(slow.between_latency, 40e-6);
  EXPECT_EQ(slow.within_latency, 1e-6);
  EXPECT_EQ(read_machine({"m.toml", replaced("ranks = 4", "ranks = 4\nlatency = 0.0")})
                .network.within_latency,
            0);
}

TEST(MachineFile, MaySayMoreOfItsNodesAndStorage) {
  const Machine without = machine();
  EXPECT_FALSE(without.rank_memory || without.site.node_watts ||
               without.site.node_failure_seconds || without.site.storage_bytes);
  EXPECT_EQ(without.network.rings, 1);
  std::string text = replaced("ranks = 4", "ranks = 4\nwatts = 700\nhours_between_failures = 0.5");
  text = text.replace(text.find("[node]"), 0, "[storage]\nbandwidth = \"2GB\"\n");
  text = text.replace(text.find("tflops"), 0, "memory = \"80GB\"\n") + "rings = 8\n";
  const Machine m = read_machine({"m.toml", text});
  EXPECT_EQ(m.rank_memory, 80e9);
  EXPECT_EQ(m.site.node_watts, 700);
  EXPECT_EQ(m.site.node_failure_seconds, 1800);
  EXPECT_EQ(m.site.storage_bytes, 2e9);
  EXPECT_EQ(m.network.rings, 8);
}

TEST(MachineFile, MayHaveARateForEachPrecision) {
  const Machine m =
      read_machine({"m.toml", replaced("tflops = 125", "tflops_bf16 = 100\ntflops_fp32 = 10")});
  EXPECT_EQ(m.operations_at(Dtype::bf16), 100e12);
  EXPECT_EQ(m.operations_at(Dtype::fp32), 10e12);
  EXPECT_EQ(machine().operations_at(Dtype::fp16), 125e12) << "one for all";
  try {
    static_cast<void>(m.rates_for(Dtype::fp16, 1000, 1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_EQ(std::string(error.what()),
              "m.toml has no rate for train.precision = \"fp16\": it has fp32 and bf16; add "
              "rank.tflops_fp16, or plan in a precision that it has");
  }
  const std::string without = replaced("tflops = 125\n", "");
  EXPECT_EQ(message_of(without),
            "m.toml: key 'rank.tflops' is missing; it must be a number above 0, or one for each "
            "precision, such as rank.tflops_bf16");
}

TEST(MachineFile, CountsAdaptersAtNineTenthsOfTheirRate) {
  std::string text = good.substr(0, good.find("[network]"));
  EXPECT_THROW(read_machine({"m.toml", text}).require_network(2), Error) << "of one node";
  text += "[network]\ncommunicator = \"nccl\"\n";
  const Machine m = read_machine({"m.toml", text + "adapters = \"4 x 200 Gbit/s\"\n"});
  EXPECT_DOUBLE_EQ(m.network.rank_between, 22.5e9);
  EXPECT_DOUBLE_EQ(m.network.node_between, 90e9);
  EXPECT_EQ(m.network.rings, 4);
  EXPECT_EQ(m.communicator, deck::CommunicatorKind::nccl);
  m.require_network(2);
  for (const char* bad :
       {"4 x 200", "x 200 Gbit/s", "0 x 200 Gbit/s", "4 x nan Gbit/s", "4 x -1 Gbit/s"})
    EXPECT_NE(message_of(text + "adapters = \"" + bad + "\"\n")
                  .find("key 'network.adapters' must be the adapters of a node such as"),
              std::string::npos)
        << bad;
  EXPECT_NE(message_of(text + "adapters = \"4 x 200 Gbit/s\"\nrings = 2\n")
                .find("'network.rings' is given by network.adapters"),
            std::string::npos);
}

TEST(MachineFile, GivesSmallMicroBatchesLess) {
  const Machine m =
      read_machine({"m.toml", replaced("tflops = 125", "tflops = 125\nhalf_rows = 500")});
  EXPECT_DOUBLE_EQ(m.rates_for(Dtype::bf16, 1000, 500).operations, 125e12 * 0.2 / 2);
  EXPECT_DOUBLE_EQ(m.rates_for(Dtype::bf16, 1000, 1500).operations, 125e12 * 0.2 * 3 / 4);
  EXPECT_DOUBLE_EQ(machine().rates_for(Dtype::bf16, 1000, 1).operations, 125e12 * 0.2);
}

TEST(MachineFile, SaysWhereItsWidthsEnd) {
  EXPECT_EQ(machine().extrapolation(1000), "");
  EXPECT_EQ(machine().extrapolation(3000), "");
  EXPECT_EQ(machine().extrapolation(4000),
            "model.hidden = 4000 is outside the widths of [attained] in m.toml, 1000 to 3000; the "
            "share of 3000 is taken, so the time is a guess");
  EXPECT_EQ(Machine{}.extrapolation(4000), "");
}

TEST(MachineFile, HasAllOfTheHostOrNothing) {
  const std::string some = good + "[host]\nbandwidth = \"50GB\"\nmemory = \"200GB\"\n";
  EXPECT_EQ(message_of(some),
            "m.toml: key 'host.memory_bandwidth' is missing; it must be bytes a second such as "
            "\"75GB\"");
  const Machine m = read_machine({"m.toml", some + "memory_bandwidth = \"60GB\"\n"});
  EXPECT_EQ(m.host.copied_bytes, 50e9);
  EXPECT_EQ(m.host.memory_bytes, 60e9);
  EXPECT_EQ(m.host_memory, 200e9);
  EXPECT_EQ(m.rates_for(Dtype::fp32, 1000, 1).host.copied_bytes, 50e9);
  EXPECT_FALSE(machine().host.known());
}

TEST(MachineFile, SharesAreStraightLinesBetweenWidths) {
  const Machine m = machine();
  for (const auto& [width, share] :
       {std::pair<Index, double>{1, .2}, {1000, .2}, {1500, .3}, {3000, .6}, {50000, .6}})
    EXPECT_DOUBLE_EQ(m.attained_at(width), share) << width;
  EXPECT_EQ(Machine{}.attained_at(1000), 1) << "without shares tflops are attained";
}

TEST(MachineFile, SaysWhereItIsWrong) {
  const std::pair<std::string, std::string> cases[] = {
      {replaced("tflops = 125", "tflops = 0"),
       "m.toml:2:10: key 'rank.tflops' must be a number above 0, at most 1e6, found 0"},
      {replaced("tflops", "tflop"),
       "m.toml:2:1: key 'rank.tflop' is not known (value 125); did you "
       "mean 'rank.tflops'?"},
      {replaced("\"800GB\"", "800"),
       "m.toml:3:20: key 'rank.memory_bandwidth' must be bytes a second such as \"75GB\", found "
       "800"},
      {replaced("0.6", "1.5"),
       "m.toml:6:8: key 'attained.3000' must be a number above 0, at most 1, found 1.5"},
      {replaced("3000 =", "wide ="),
       "m.toml:6:1: a key of [attained] must be a width, an integer "
       "from 1 to 1000000, found 'wide'"},
      {replaced("3000 =", "1e3 ="), "m.toml:6:1: width 1000 is given twice"},
      {replaced("ranks = 4", "ranks = 0"),
       "m.toml:8:9: key 'node.ranks' must be an integer from 1 to 1000000, found 0"},
      {replaced("ranks = 4", "ranks = 4.5"),
       "m.toml:8:9: key 'node.ranks' must be an integer from 1 to 1000000, found 4.5"},
      {"x = 1\n" + good, "m.toml:1:1: key 'x' is not known (value 1); the keys are rank.tflops, "},
      {replaced("[node]", "[[node]]"),
       "m.toml:7:1: [node] is one table, found [[node]], a list of tables"},
      {good + "latency = -1\n",
       "m.toml:13:11: key 'network.latency' must be microseconds, a number from 0 to 1e6, found "
       "-1"},
      {replaced("125", "fast"), "m.toml:2:10: not valid TOML: fast is not a value"}};
  for (const auto& [text, expected] : cases)
    EXPECT_EQ(message_of(text).substr(0, expected.size()), expected);
}

TEST(MachineFile, NamesWhatIsMissingAndAllElseAtOnce) {
  EXPECT_EQ(
      message_of(replaced("node_bandwidth", "nodes_bandwidth")),
      "m.toml:12:1: key 'network.nodes_bandwidth' is not known (value \"32GB\"); did you mean "
      "'network.node_bandwidth'?\n"
      "m.toml: key 'network.node_bandwidth' is missing; it must be bytes a second such as "
      "\"75GB\"");
}

/// Sums by a library are NCCL's, and so is everything else then. Latencies are left out.
Rates rates_of(const Entry& entry) {
  Machine m = machine();
  m.network.within_latency = m.network.between_latency = 0;
  return estimate(entry, m.rates_for(entry.precision, entry.width, entry.rows()), m.network).rates;
}

// Eight ranks on two nodes. A ring leaves the node once.
TEST(MachineRates, OfRingsAreTheirSlowestHops) {
  const Rates rates = rates_of(entry_of(8, 1, deck::ReductionOrder::library));
  EXPECT_DOUBLE_EQ(rates.operations, 0.4 * 125e12) << "at a width of 2000";
  EXPECT_EQ(rates.memory_bytes, 800e9);
  EXPECT_DOUBLE_EQ(rates.sent_bytes, 10e9);
}

// Over MPI, nodes add gradients: each rank sends 6 parts within the node, one after another, then 1
// to the other node, where the four ranks of a node share 32 GB. A gather sends 1 to the other
// node, then 6 within.
TEST(MachineRates, OfOrderedSumsAreThoseOfMessagesInTurns) {
  const Rates rates = rates_of(entry_of(8, 1, deck::ReductionOrder::ranks));
  const double seconds = 2 * (6 / 100e9 + 1 / (32e9 / 4));
  EXPECT_NEAR(rates.sent_bytes, 14 / seconds, 1e-6 * rates.sent_bytes);
}

TEST(MachineRates, KeepTensorGroupsInTheirNode) {
  const Entry entry = entry_of(8, 4, deck::ReductionOrder::library);
  double data = 0, tensor = 0;
  for (const metrics::TrafficRow& row : entry.traffic)
    (row.group == "data" ? data : tensor) += static_cast<double>(row.bytes_per_step);
  ASSERT_GT(data, 0);
  ASSERT_GT(tensor, 0);
  const double seconds = tensor / 100e9 + data / (32e9 / 4);
  EXPECT_DOUBLE_EQ(rates_of(entry).sent_bytes, (data + tensor) / seconds);
}

TEST(MachineRates, OfOneRankAreThoseOfItsNode) {
  EXPECT_EQ(rates_of(entry_of(1, 1, deck::ReductionOrder::library)).sent_bytes, 100e9);
}

TEST(MachineReport, ShowsNoOverlapOfRoundingErrors) {
  Entry entry = entry_of(8, 1, deck::ReductionOrder::library);
  entry.estimate = Estimate{.rates = {}, .model = 1.5, .messages = 0.75, .overlapped = 1e-16};
  const std::string text = table(std::vector{entry});
  EXPECT_NE(text.find("messages 750.0 ms\n"), std::string::npos) << text;
}

TEST(MachineReport, ShowsWhatIsAttained) {
  Entry entry = entry_of(8, 1, deck::ReductionOrder::library);
  const std::string without = table(std::vector{entry});
  EXPECT_EQ(without.find("attained"), std::string::npos) << without;
  EXPECT_TRUE(nlohmann::json::parse(json(std::vector{entry}))[0].at("tflops_per_rank").is_null());
  entry.work.operations = 3e12, entry.work.recomputed_operations = 1e12;
  entry.estimate = Estimate{.rates = {}, .model = 1.5, .messages = 0.75, .overlapped = 0.25};
  entry.machine = "m.toml";
  const std::string with = table(std::vector{entry});
  EXPECT_NE(
      with.find("attained    2.0 Tflop/s a rank, 1.5 without what is recomputed, at the rates "
                "of m.toml\n"),
      std::string::npos)
      << with;
  EXPECT_NE(with.find("messages 750.0 ms, 250.0 ms of them overlapped\n"), std::string::npos)
      << with;
  const auto found = nlohmann::json::parse(json(std::vector{entry}))[0];
  EXPECT_DOUBLE_EQ(found.at("tflops_per_rank").get<double>(), 2);
  EXPECT_DOUBLE_EQ(found.at("model_tflops_per_rank").get<double>(), 1.5);
}

}  // namespace
}  // namespace kzero::plan
