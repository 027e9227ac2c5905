#include "runtime/energy.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <fstream>
#include <thread>

#include "runtime/execution.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using runtime::FoundCounter;

/// A folder like /sys, with counters that a test sets. A thread reads them meanwhile, so a file
/// always has all of its text.
class Energy : public testing::Test {
 protected:
  void write(const fs::path& file, const std::string& text) const {
    fs::create_directories((folder.path() / file).parent_path());
    const fs::path fresh = folder.path() / "fresh";
    std::ofstream(fresh) << text << '\n';
    fs::rename(fresh, folder.path() / file);
  }
  void domain(const std::string& zone, const std::string& name, long energy,
              long range = 1'000'000) const {
    const fs::path at = fs::path("class/powercap") / zone;
    write(at / "name", name);
    write(at / "max_energy_range_uj", std::to_string(range));
    write(at / "energy_uj", std::to_string(energy));
  }
  FoundCounter found(std::chrono::milliseconds gap = 10s) const {
    return runtime::node_energy(folder.path(), gap);
  }

  TemporaryFolder folder;
};

TEST_F(Energy, PackagesAndTheirMemoryAreAddedUp) {
  domain("intel-rapl:0", "package-0", 100);
  domain("intel-rapl:0:0", "core", 7);
  domain("intel-rapl:0:1", "dram", 50);
  domain("intel-rapl:1", "package-1", 300);
  domain("intel-rapl:2", "psys", 9);
  domain("intel-rapl-mmio:0", "package-0", 100);
  const FoundCounter all = found();
  ASSERT_TRUE(all.counter) << all.problem;
  EXPECT_EQ(all.source, "RAPL");
  EXPECT_EQ(all.counter->joules(), 0);
  domain("intel-rapl:0", "package-0", 200'100);
  domain("intel-rapl:0:0", "core", 99'999);
  domain("intel-rapl:0:1", "dram", 30'050);
  domain("intel-rapl:1", "package-1", 4'300);
  domain("intel-rapl:2", "psys", 999'999);
  domain("intel-rapl-mmio:0", "package-0", 200'100);
  EXPECT_NEAR(all.counter->joules(), 0.2 + 0.03 + 0.004, 1e-9);
}

TEST_F(Energy, ACounterThatOverflowsGoesOnFromZero) {
  domain("intel-rapl:0", "package-0", 900'000);
  const FoundCounter package = found();
  domain("intel-rapl:0", "package-0", 50'000);
  EXPECT_NEAR(package.counter->joules(), 0.15, 1e-9);
  domain("intel-rapl:0", "package-0", 60'000);
  EXPECT_NEAR(package.counter->joules(), 0.16, 1e-9);
}

TEST_F(Energy, OverflowsBetweenTwoQuestionsAreNoticed) {
  domain("intel-rapl:0", "package-0", 900'000);
  const FoundCounter package = found(1ms);
  for (const long energy : {600'000L, 500'000L}) {
    std::this_thread::sleep_for(200ms);
    domain("intel-rapl:0", "package-0", energy);
  }
  std::this_thread::sleep_for(200ms);
  EXPECT_NEAR(package.counter->joules(), 0.7 + 0.9, 1e-9);
}

TEST_F(Energy, CrayCountsTheWholeNode) {
  EXPECT_FALSE(runtime::counts_devices(folder.path()));
  domain("intel-rapl:0", "package-0", 100);
  write("cray/pm_counters/energy", "66836 J 1439236447654321 us");
  EXPECT_TRUE(runtime::counts_devices(folder.path()));
  const FoundCounter node = found();
  EXPECT_EQ(node.source, "pm_counters");
  write("cray/pm_counters/energy", "67000 J 1439236447754321 us");
  EXPECT_EQ(node.counter->joules(), 164);
}

TEST_F(Energy, ANodeWithoutCountersSaysSo) {
  const std::string wanted = "no counters in " + (folder.path() / "class/powercap").string();
  EXPECT_EQ(found().problem, wanted);
  domain("intel-rapl:0", "core", 1);
  EXPECT_EQ(found().problem, wanted);
}

TEST_F(Energy, ACounterThatCannotBeReadIsNamed) {
  domain("intel-rapl:0", "package-0", 100);
  const fs::path file = folder.path() / "class/powercap/intel-rapl:0/energy_uj";
  fs::permissions(file, fs::perms::none);
  if (std::ifstream(file)) fs::remove(file);  // the superuser reads everything
  const FoundCounter none = found();
  EXPECT_FALSE(none.counter);
  EXPECT_TRUE(none.problem == file.string() + ": Permission denied" ||
              none.problem == file.string() + ": No such file or directory")
      << none.problem;
  fs::remove(file);  // other users could not write to it
  std::ofstream(file) << "much\n";
  EXPECT_EQ(found().problem, file.string() + ": is not a number");
}

TEST_F(Energy, ACounterThatVanishesMakesTheSumUnknown) {
  domain("intel-rapl:0", "package-0", 100);
  const FoundCounter package = found();
  fs::remove_all(folder.path() / "class");
  EXPECT_TRUE(std::isnan(package.counter->joules()));
  domain("intel-rapl:0", "package-0", 200);
  EXPECT_TRUE(std::isnan(package.counter->joules()));
}

/// support/nvml.c is a library whose device 0000:18:00.0 has used 1 J more at each reading. It
/// stays behind if the program runs on another machine.
bool has_fake_nvml() { return fs::exists(KZERO_FAKE_NVML); }

TEST(DeviceEnergy, NvmlIsFoundAtRunTime) {
  if (!has_fake_nvml()) GTEST_SKIP() << KZERO_FAKE_NVML << " is not there";
  const FoundCounter device = runtime::device_energy("0000:18:00.0", KZERO_FAKE_NVML);
  ASSERT_TRUE(device.counter) << device.problem;
  EXPECT_EQ(device.source, "NVML");
  EXPECT_EQ(device.counter->joules(), 1);
  EXPECT_EQ(device.counter->joules(), 2);
}

TEST(DeviceEnergy, WhatIsMissingIsNamed) {
  if (!has_fake_nvml()) GTEST_SKIP() << KZERO_FAKE_NVML << " is not there";
  EXPECT_EQ(runtime::device_energy("0000:19:00.0", KZERO_FAKE_NVML).problem,
            "device 0000:19:00.0: NVML: nvmlDeviceGetHandleByPciBusId_v2: Not Found");
  const std::string problem = runtime::device_energy("0000:18:00.0", "libabsent.so.1").problem;
  EXPECT_EQ(problem.find("device 0000:18:00.0: libabsent.so.1: cannot open"), 0U) << problem;
}

TEST(DeviceEnergy, ThisDeviceHasACounter) {
  const std::string name = runtime::device_name();
  if (name.empty()) GTEST_SKIP() << "this build computes on the host";
  if (!runtime::device_kind().starts_with("NVIDIA")) GTEST_SKIP() << "not a device of NVIDIA";
  const FoundCounter device = runtime::device_energy(name.substr(name.find(' ') + 1));
  ASSERT_TRUE(device.counter) << device.problem;
  std::this_thread::sleep_for(1s);
  EXPECT_GT(device.counter->joules(), 1);  // idle devices take tens of watts
  EXPECT_LT(device.counter->joules(), 10'000);
}

}  // namespace
}  // namespace kzero::tests
