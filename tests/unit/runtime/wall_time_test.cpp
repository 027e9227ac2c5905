#include "runtime/wall_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace kzero::runtime {
namespace {

/// The environment of a job that ends in the given number of seconds.
class WallTime : public ::testing::Test {
 protected:
  WallTime() { unset(); }
  ~WallTime() override { unset(); }
  static void unset() {
    unsetenv(slurm_job_end_variable);
    unsetenv(job_end_variable);
  }

  static void end_job_in(double seconds) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    set(std::to_string(static_cast<long>(now.count() + seconds)));
  }
  static void set(const std::string& value) { setenv(slurm_job_end_variable, value.c_str(), 1); }

  static std::string error() {
    try {
      find_deadline(0);
    } catch (const Error& problem) {
      EXPECT_EQ(problem.code(), ExitCode::usage);
      return problem.what();
    }
    return "";
  }
};

// The kernel's record counts ticks of 10 ms. A test program is not older than its ctest limit.
TEST_F(WallTime, TheProcessAgesWithTheClock) {
  const double first = process_seconds();
  EXPECT_GT(first, -0.02);
  EXPECT_LT(first, 300);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(process_seconds(), first + 0.05);
}

// Start at tick 123456 with 100 ticks per second: 1234.56 s after boot. In a container with its own
// uptime, an age of -1134 s disabled run.wall_limit.
TEST_F(WallTime, AnAgeThatCannotBeIsNone) {
  const std::string stat =
      "4711 (a name) (of blanks) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 123456 20 21\n";
  ASSERT_TRUE(age_by_kernel(stat, 1240, 100));
  EXPECT_NEAR(*age_by_kernel(stat, 1240, 100), 5.44, 1e-9);
  EXPECT_EQ(age_by_kernel(stat, 1234.555, 100), 0.0);  // within a tick
  EXPECT_FALSE(age_by_kernel(stat, 100, 100));
  EXPECT_FALSE(
      age_by_kernel("4711 (x) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 0 20", 9, 100));
  EXPECT_FALSE(age_by_kernel("", 1240, 100));
  EXPECT_FALSE(age_by_kernel("4711 (x) R 1 2 3", 1240, 100));
}

TEST_F(WallTime, ThisProcesssStartIsKnown) { EXPECT_TRUE(knows_process_start()); }

TEST_F(WallTime, OutsideJobsTheDecksLimitAloneCounts) {
  EXPECT_FALSE(find_deadline(0));
  const auto deadline = find_deadline(90);
  ASSERT_TRUE(deadline);
  EXPECT_EQ(deadline->seconds, 90);
  EXPECT_EQ(deadline->source, "run.wall_limit");
}

TEST_F(WallTime, AJobsEndCountsFromTheStartOfTheProcess) {
  end_job_in(100);
  const auto deadline = find_deadline(0);
  ASSERT_TRUE(deadline);
  EXPECT_EQ(deadline->source, "SLURM_JOB_END_TIME");
  EXPECT_NEAR(deadline->seconds, process_seconds() + 100, 1.5);  // the variable has full seconds
}

TEST_F(WallTime, TheEarlierOfBothCounts) {
  end_job_in(100);
  EXPECT_EQ(find_deadline(process_seconds() + 10)->source, "run.wall_limit");
  EXPECT_EQ(find_deadline(process_seconds() + 200)->source, "SLURM_JOB_END_TIME");
}

TEST_F(WallTime, AnEndThatAnotherBatchSystemsScriptSaysCountsToo) {
  setenv(job_end_variable, std::to_string(std::time(nullptr) + 50).c_str(), 1);
  EXPECT_EQ(find_deadline(0)->source, "KZERO_JOB_END_TIME");
  EXPECT_NEAR(find_deadline(0)->seconds, process_seconds() + 50, 1.5);
  end_job_in(100);
  EXPECT_EQ(find_deadline(0)->source, "KZERO_JOB_END_TIME");
  end_job_in(10);
  EXPECT_EQ(find_deadline(0)->source, "SLURM_JOB_END_TIME");
  EXPECT_EQ(find_deadline(5)->source, "run.wall_limit");
  setenv(job_end_variable, "later", 1);
  EXPECT_NE(error().find("KZERO_JOB_END_TIME must be seconds since 1970"), std::string::npos);
  setenv(job_end_variable, "1000", 1);
  EXPECT_NE(error().find("KZERO_JOB_END_TIME=1000 passed"), std::string::npos) << error();
}

TEST_F(WallTime, AnEndThatPassedOrIsNoNumberIsAnError) {
  end_job_in(-3600);
  EXPECT_NE(error().find("belongs to a job that is over"), std::string::npos) << error();
  for (const char* value : {"", "soon", "12 ", "1e9", "99999999999999999999"}) {
    set(value);
    EXPECT_NE(error().find("must be seconds since 1970"), std::string::npos) << value;
  }
}

}  // namespace
}  // namespace kzero::runtime
