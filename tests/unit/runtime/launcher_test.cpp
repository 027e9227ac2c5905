#include "runtime/launch.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include "base/version.hpp"

namespace kzero::runtime {
namespace {

using Variables = std::map<std::string, std::string>;

/// Removes the test's own launcher variables from the environment and restores them afterwards. The
/// test itself runs under mpiexec.
class Launcher : public ::testing::Test {
 protected:
  Launcher() {
    for (const char* name : names) {
      const char* value = std::getenv(name);
      if (value != nullptr) before_[name] = value;
      unsetenv(name);
    }
  }
  ~Launcher() override {
    for (const char* name : names) unsetenv(name);
    for (const auto& [name, value] : before_) setenv(name.c_str(), value.c_str(), 1);
  }

  static std::string problem(const Variables& variables, int mpi_ranks = 1) {
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    const auto found = foreign_launch(mpi_ranks);
    for (const auto& [name, value] : variables) unsetenv(name.c_str());
    return found ? found->problem : "";
  }

 private:
  static constexpr const char* names[] = {
      "PMI_SIZE",     "PMI_RANK",     "MPI_LOCALNRANKS",      "OMPI_COMM_WORLD_SIZE",
      "PMIX_RANK",    "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "MV2_COMM_WORLD_SIZE",
      "SLURM_PROCID", "SLURM_STEP_ID"};
  Variables before_;
};

TEST_F(Launcher, OfAnotherMpiIsNamed) {
  const std::string text = problem({{"OMPI_COMM_WORLD_SIZE", "4"}, {"PMIX_RANK", "0"}});
  EXPECT_EQ(text.find("OMPI_COMM_WORLD_SIZE=4: Open MPI's mpirun started 4 ranks"), 0U) << text;
  // The build's launcher may be missing on the machine that runs the program.
  const std::string launcher = std::filesystem::exists(mpi_launcher())
                                   ? mpi_launcher()
                                   : "the mpiexec of the MPI library that kzero --version names";
  EXPECT_NE(text.find("start it with " + launcher + ", or"), std::string::npos) << text;
  EXPECT_NE(problem({{"PMI_SIZE", "2"}}), "");
  EXPECT_NE(problem({{"MV2_COMM_WORLD_SIZE", "2"}}), "");
  EXPECT_NE(problem({{"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_PROCID", "0"}}), "");
  EXPECT_NE(problem({{"PMIX_RANK", "1"}}), "");
}

TEST_F(Launcher, OfThisMpiIsFine) {
  EXPECT_EQ(problem({{"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}}, 4), "");
  EXPECT_EQ(problem({{"PMI_SIZE", "1"}, {"MPI_LOCALNRANKS", "1"}}), "");
  // mpiexec -n 1 in a job of two nodes, whose proxies are started by srun.
  EXPECT_EQ(problem({{"PMI_SIZE", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_STEP_ID", "3"}}),
            "");
}

TEST_F(Launcher, MayBeMissing) {
  EXPECT_EQ(problem({}), "");
  // As in a batch script of a job with two tasks, and in a shell started by srun --pty or salloc.
  EXPECT_EQ(problem({{"SLURM_NTASKS", "2"}, {"SLURM_PROCID", "0"}}), "");
  EXPECT_EQ(problem({{"SLURM_NTASKS", "2"}, {"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_STEP_ID", "0"}}),
            "");
  EXPECT_EQ(problem({{"PMIX_RANK", "0"}}), "");
  EXPECT_EQ(problem({{"PMI_SIZE", "nonsense"}}), "");
}

}  // namespace
}  // namespace kzero::runtime
