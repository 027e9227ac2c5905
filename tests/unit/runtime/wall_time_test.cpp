#include "runtime/wall_time.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace kzero::runtime {
namespace {

/// The environment of a job that ends so many seconds from now.
class WallTime : public ::testing::Test {
 protected:
  WallTime() { unsetenv(job_end_variable); }
  ~WallTime() override { unsetenv(job_end_variable); }

  static void end_job_in(double seconds) {
    const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
    set(std::to_string(static_cast<long>(now.count() + seconds)));
  }
  static void set(const std::string& value) { setenv(job_end_variable, value.c_str(), 1); }

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

// The kernel's record counts 10 ms ticks; a test program is not older than ctest's limit for it.
TEST_F(WallTime, TheProcessAgesWithTheClock) {
  const double first = process_seconds();
  EXPECT_GT(first, -0.02);
  EXPECT_LT(first, 300);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_GE(process_seconds(), first + 0.05);
}

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
  EXPECT_NEAR(deadline->seconds, process_seconds() + 100, 1.5);  // whole seconds in the variable
}

TEST_F(WallTime, TheEarlierOfBothCounts) {
  end_job_in(100);
  EXPECT_EQ(find_deadline(process_seconds() + 10)->source, "run.wall_limit");
  EXPECT_EQ(find_deadline(process_seconds() + 200)->source, "SLURM_JOB_END_TIME");
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
