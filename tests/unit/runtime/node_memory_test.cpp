#include "runtime/node_memory.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "runtime/host_name.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::runtime {
namespace {

constexpr Index mebibyte = Index{1} << 20;

/// A kernel's files in their own folder: a node with 1000 MiB available.
class NodeMemory : public ::testing::Test {
 protected:
  NodeMemory() { write("proc/meminfo", "MemTotal: 4096000 kB\nMemAvailable: 1024000 kB\n"); }

  void write(const std::string& path, const std::string& text) const {
    const auto file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  void set(const std::string& group, const std::string& name, Index mebibytes) const {
    write("cgroup/" + group + "/" + name, std::to_string(mebibytes * mebibyte) + "\n");
  }
  void groups(const std::string& text) const { write("proc/self/cgroup", text); }

  AvailableMemory available() const {
    return available_memory(
        {(folder_.path() / "proc").string(), (folder_.path() / "cgroup").string()});
  }
  Index left() const { return available().bytes / mebibyte; }
  std::string limit() const {
    const std::string file = available().limit;
    return file.empty() ? "" : std::filesystem::relative(file, folder_.path() / "cgroup").string();
  }

 private:
  tests::TemporaryFolder folder_;
};

TEST_F(NodeMemory, IsTheKernelsWithoutGroups) {
  EXPECT_EQ(left(), 1000);
  EXPECT_EQ(limit(), "");
  groups("0::/\n");
  EXPECT_EQ(left(), 1000);
}

TEST_F(NodeMemory, EndsAtTheLimitOfTheProcessesOwnGroup) {
  groups("0::/slurm/job_7/step_0\n");
  set("slurm/job_7/step_0", "memory.max", 400);
  set("slurm/job_7/step_0", "memory.current", 100);
  EXPECT_EQ(left(), 300);
  EXPECT_EQ(limit(), "slurm/job_7/step_0/memory.max");
}

TEST_F(NodeMemory, EndsAtTheLeastOfAllGroupsAround) {
  groups("0::/slurm/job_7/step_0\n");
  write("cgroup/slurm/job_7/step_0/memory.max", "max\n");
  set("slurm/job_7/step_0", "memory.current", 50);
  set("slurm/job_7", "memory.max", 400);
  set("slurm/job_7", "memory.current", 150);
  set("slurm", "memory.max", 900);
  set("slurm", "memory.current", 500);
  EXPECT_EQ(left(), 250);
  EXPECT_EQ(limit(), "slurm/job_7/memory.max");
  set("slurm", "memory.current", 800);
  EXPECT_EQ(left(), 100);
  set("", "memory.max", 60);  // as a container sees its own limit
  EXPECT_EQ(left(), 60);
  EXPECT_EQ(limit(), "memory.max");
}

TEST_F(NodeMemory, EndsAtMemoryHigh) {
  groups("0::/job\n");
  set("job", "memory.max", 500);
  set("job", "memory.high", 450);
  EXPECT_EQ(left(), 450);
  EXPECT_EQ(limit(), "job/memory.high");
}

TEST_F(NodeMemory, CountsFileCacheOfAGroupAsLeft) {
  groups("0::/job\n");
  set("job", "memory.max", 500);
  set("job", "memory.current", 480);
  write("cgroup/job/memory.stat",
        "anon 1048576\nfile 419430400\nkernel_stack 7\ninactive_file 314572800\n"
        "active_file 104857600\nunevictable 0\n");
  EXPECT_EQ(left(), 420);
  set("job", "memory.current", 700);  // above the limit, which was lowered
  write("cgroup/job/memory.stat", "inactive_file 0\n");
  EXPECT_EQ(left(), 0);
}

TEST_F(NodeMemory, KnowsVersionOne) {
  groups("5:cpu,cpuacct:/slurm\n4:memory:/slurm/uid_0/job_7\n1:name=systemd:/x\n0::/user.slice\n");
  write("cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  set("memory", "memory.usage_in_bytes", 3000);
  set("memory/slurm/uid_0/job_7", "memory.limit_in_bytes", 400);
  set("memory/slurm/uid_0/job_7", "memory.usage_in_bytes", 390);
  write("cgroup/memory/slurm/uid_0/job_7/memory.stat",
        "inactive_file 1\ntotal_inactive_file 104857600\ntotal_active_file 52428800\n");
  EXPECT_EQ(left(), 160);
  EXPECT_EQ(limit(), "memory/slurm/uid_0/job_7/memory.limit_in_bytes");
}

TEST_F(NodeMemory, SeesTheMountsRootWhereAContainerHidesThePath) {
  groups("4:memory:/docker/0123456789ab\n");
  set("memory", "memory.limit_in_bytes", 200);
  EXPECT_EQ(left(), 200);
  groups("0::/../../outside\n");
  set("", "memory.max", 100);
  EXPECT_EQ(left(), 100);
}

TEST_F(NodeMemory, SurvivesDamagedFiles) {
  for (const char* text : {"", "\n", "nonsense", ":::", "0:", "4:memory", "0::"}) {
    groups(text);
    EXPECT_EQ(left(), 1000) << text;
  }
}

TEST(MemoryShortage, NamesTheNode) {
  const Index much = Index{1} << 60;
  const std::string text = memory_shortage(much, 2);
  EXPECT_TRUE(text.starts_with("node " + host_name() + " has ")) << text;
  EXPECT_NE(text.find(" left for 2 ranks"), std::string::npos) << text;
  EXPECT_NE(memory_shortage(much, 1).find(" left for 1 rank"), std::string::npos);
  EXPECT_EQ(memory_shortage(1, 1), "");
}

}  // namespace
}  // namespace kzero::runtime
