#include "run/energy.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "run/node_times.hpp"
#include "support/temporary_folder.hpp"
#include "support/training.hpp"

namespace kzero::tests {
namespace {

namespace fs = std::filesystem;
using run::EnergyMeter;
using run::EnergyPlace;

/// Ranks on faked nodes of `node_ranks` ranks. All ranks of a node see the same files.
class EnergyOfRun : public testing::Test {
 protected:
  EnergyOfRun() : shared_(group.broadcast(folder_.path())) {}
  ~EnergyOfRun() override { group.barrier(); }

  int node(int rank) const { return rank / 2; }
  int nodes() const { return node(group.size() - 1) + 1; }
  fs::path system() const { return shared_ / std::to_string(node(group.rank())); }
  EnergyPlace place() const {
    const std::string name = "node" + std::to_string(node(group.rank()));
    return {.host = name, .node = name, .system = system()};
  }

  /// Sets the counters of all nodes: microjoules of a package, or joules of Cray.
  void set(int on_node, const std::string& file, const std::string& text) const {
    const fs::path path = shared_ / std::to_string(on_node) / file;
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << '\n';
  }
  void set_package(int on_node, long microjoules) const {
    group.barrier();
    if (group.is_root()) {
      const std::string zone = "class/powercap/intel-rapl:0/";
      set(on_node, zone + "name", "package-0");
      set(on_node, zone + "max_energy_range_uj", "1000000000");
      set(on_node, zone + "energy_uj", std::to_string(microjoules));
    }
    group.barrier();
  }

  const grid::Group group = first_ranks(launch_ranks());

 private:
  const TemporaryFolder folder_;
  const fs::path shared_;
};

TEST_F(EnergyOfRun, EachNodeCountsOnceHoweverManyRanksItHas) {
  for (int i = 0; i < nodes(); ++i) set_package(i, 1000);
  EnergyMeter meter(group, place());
  EXPECT_TRUE(meter.is_on());
  EXPECT_EQ(meter.note(), "");
  double wanted = 0;
  for (int i = 0; i < nodes(); ++i) {
    set_package(i, 1000 + 2'000'000 * (i + 1));
    wanted += 2 * (i + 1);
  }
  const bool reads = group.rank() % 2 == 0;
  EXPECT_NEAR(meter.take(), reads ? 2 * (node(group.rank()) + 1) : 0, 1e-9);
  EXPECT_NEAR(meter.take(), 0, 1e-9);
  const auto all = meter.total(100, 10);
  ASSERT_TRUE(all);
  EXPECT_NEAR(all->joules, wanted, 1e-9);
  EXPECT_NEAR(all->watts, wanted / 10, 1e-9);
  EXPECT_NEAR(*all->joules_per_token, wanted / 100, 1e-9);
  if (!group.is_root()) return;
  EXPECT_EQ(all->sources, std::vector<std::string>{"RAPL"});
  EXPECT_EQ(all->nodes, nodes());
  EXPECT_EQ(all->measured_nodes, nodes());
  EXPECT_EQ(all->devices, 0);
}

TEST_F(EnergyOfRun, NothingToReadIsOneLineOnTheRoot) {
  EnergyMeter meter(group, place());
  EXPECT_FALSE(meter.is_on());
  EXPECT_EQ(meter.take(), 0);
  EXPECT_FALSE(meter.total(1, 1));
  const std::string wanted =
      "energy      none: no counters in " + system().string() + "/class/powercap";
  EXPECT_EQ(meter.note(), group.is_root() ? wanted : "");
}

TEST_F(EnergyOfRun, ANodeThatCannotBeReadIsNamed) {
  if (nodes() < 2) GTEST_SKIP() << "needs two nodes, of two ranks each";
  set_package(0, 1000);
  EnergyMeter meter(group, place());
  set_package(0, 3'001'000);
  EXPECT_TRUE(meter.is_on());
  const auto all = meter.total(0, 10);
  EXPECT_NEAR(all->joules, 3, 1e-9);
  EXPECT_FALSE(all->joules_per_token) << "no steps, no tokens";
  if (!group.is_root()) return;
  EXPECT_EQ(all->measured_nodes, 1);
  EXPECT_EQ(meter.note().find("energy      without 1 of 2 nodes, first node1: no counters in "), 0U)
      << meter.note();
}

/// The library's device has used 1 J more at each reading.
TEST_F(EnergyOfRun, ADeviceThatRanksShareCountsOnce) {
  if (!fs::exists(KZERO_FAKE_NVML)) GTEST_SKIP() << KZERO_FAKE_NVML << " is not there";
  EnergyPlace here = place();
  here.device = "0000:18:00.0";
  here.nvml = KZERO_FAKE_NVML;
  EnergyMeter meter(group, here);
  const auto all = meter.total(1, 1);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->joules, nodes());
  if (group.is_root()) {
    EXPECT_EQ(all->sources, std::vector<std::string>{"NVML"});
    EXPECT_EQ(all->devices, nodes());
    EXPECT_EQ(all->measured_devices, nodes());
    EXPECT_EQ(all->measured_nodes, 0);
    EXPECT_EQ(meter.note().find("energy      without processors: no counters in "), 0U)
        << meter.note();
  }
}

TEST_F(EnergyOfRun, DevicesThatCraysCountersIncludeAreNotCountedAgain) {
  for (int i = 0; group.is_root() && i < nodes(); ++i)
    set(i, "cray/pm_counters/energy", "100 J 5 us");
  group.barrier();
  EnergyPlace here = place();
  here.device = "0000:18:00.0";
  here.nvml = "libabsent.so.1";
  EnergyMeter meter(group, here);
  EXPECT_EQ(meter.note(), "");
  group.barrier();
  for (int i = 0; group.is_root() && i < nodes(); ++i)
    set(i, "cray/pm_counters/energy", "107 J 6 us");
  group.barrier();
  const auto all = meter.total(1, 1);
  EXPECT_EQ(all->joules, 7 * nodes());
  if (group.is_root()) {
    EXPECT_EQ(all->sources, std::vector<std::string>{"pm_counters"});
    EXPECT_EQ(all->devices, 0);
  }
}

TEST_F(EnergyOfRun, RecordsOfNodesHaveTheJoulesSinceTheLastOne) {
  for (int i = 0; i < nodes(); ++i) set_package(i, 1000);
  EnergyMeter meter(group, place());
  const deck::Config config = resolved(small_deck(), group);
  const Ranks ranks(config, group);
  const engine::Blueprint blueprint(config, ranks.grid.data().size());
  const TemporaryFolder folder;
  const fs::path file = folder.path() / "metrics.jsonl";
  std::ostringstream out;
  metrics::Console console(out, metrics::plain_screen(group.rank()), 1);
  std::optional<metrics::JsonlSink> sink;
  if (group.is_root()) sink.emplace(file);
  run::NodeTimes times(config, ranks.machinery, blueprint, console, sink ? &*sink : nullptr,
                       {.seconds = 0, .steps = 1}, &meter);
  for (Index done = 1; done <= 2; ++done) {
    set_package(0, 1000 + 1'000'000 * done * done);
    times.step([] { return 0; });
    if (done == 2) break;  // the end reports it
    times.agree(0);
    times.report_if_due(done);
  }
  times.finish(2);
  EXPECT_NEAR(meter.total(1, 1)->joules, 4, 1e-9);
  if (!group.is_root()) return;
  std::ifstream lines(file);
  std::vector<double> joules;
  for (std::string line; std::getline(lines, line);)
    joules.push_back(nlohmann::json::parse(line)["joules"].get<double>());
  ASSERT_EQ(joules.size(), 2U);
  EXPECT_NEAR(joules[0], 1, 1e-9);
  EXPECT_NEAR(joules[1], 3, 1e-9);
}

}  // namespace
}  // namespace kzero::tests
