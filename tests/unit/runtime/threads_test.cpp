#include "runtime/threads.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "base/error.hpp"

namespace kzero::runtime {
namespace {

/// Sets OMP_NUM_THREADS and restores it afterwards.
class ThreadsPerRank : public testing::Test {
 protected:
  ThreadsPerRank() {
    if (const char* value = std::getenv("OMP_NUM_THREADS")) before_ = value;
  }
  ~ThreadsPerRank() override {
    before_ ? setenv("OMP_NUM_THREADS", before_->c_str(), 1) : unsetenv("OMP_NUM_THREADS");
  }

 private:
  std::optional<std::string> before_;
};

TEST_F(ThreadsPerRank, AreThoseAskedForFirst) {
  setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(threads_per_rank(5, 2).count, 5);
  EXPECT_EQ(threads_per_rank(5, 2).origin, "as set");
}

TEST_F(ThreadsPerRank, AreTheEnvironmentsNext) {
  setenv("OMP_NUM_THREADS", "3", 1);
  EXPECT_EQ(threads_per_rank(0, 2).count, 3);
  setenv("OMP_NUM_THREADS", "4,2", 1);
  EXPECT_EQ(threads_per_rank(0, 2).count, 4);
}

TEST_F(ThreadsPerRank, RefuseAnEnvironmentThatIsNoNumberOfThreads) {
  for (const char* value :
       {"0", "-1", "many", "4 ", "1e3", ",4", "100000", "99999999999999999999"}) {
    setenv("OMP_NUM_THREADS", value, 1);
    EXPECT_THROW(threads_per_rank(0, 1), Error) << value;
    EXPECT_EQ(threads_per_rank(3, 1).count, 3) << value;
  }
  EXPECT_THROW(require_startable(100000), Error);
  EXPECT_NO_THROW(require_startable(1024));
}

TEST_F(ThreadsPerRank, ShareTheCoresOtherwise) {
  setenv("OMP_NUM_THREADS", "", 1);  // counts as unset
  const Index cores = threads_per_rank(0, 1).count;
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  EXPECT_EQ(cores, CPU_COUNT(&set));
  EXPECT_EQ(threads_per_rank(0, cores).count, 1);
  EXPECT_EQ(threads_per_rank(0, 10 * cores).count, 1);
}

}  // namespace
}  // namespace kzero::runtime
