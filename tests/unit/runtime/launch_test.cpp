#include "runtime/launch.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "base/error.hpp"

namespace kzero::runtime {
namespace {

/// Sets an environment variable and restores it at the end.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    before_.empty() ? unsetenv(name_) : setenv(name_, before_.c_str(), 1);
    remember_launcher();
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::string before_;
};

TEST(Launch, IsThereWhileItsConnectionIs) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Variable rank("PMI_RANK", "3"), connection("PMI_FD", std::to_string(ends[0]));
  remember_launcher();
  EXPECT_EQ(launch_rank(), 3);
  const Variable size("PMI_SIZE", "17");
  EXPECT_EQ(launch_size(), 17);
  EXPECT_FALSE(launcher_is_gone());
  EXPECT_EQ(write(ends[1], "cmd=response\n", 13), 13);  // unread messages do not indicate an end
  EXPECT_FALSE(launcher_is_gone());
  close(ends[1]);
  EXPECT_TRUE(launcher_is_gone());
  close(ends[0]);
  EXPECT_FALSE(launcher_is_gone()) << "MPI_Finalize closes it on this side";
}

TEST(Launch, OfAProgramBeforeIsLeft) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const Variable rank("PMI_RANK", "0"), size("PMI_SIZE", "1"),
      connection("PMI_FD", std::to_string(ends[0]));
  remember_launcher();
  leave_used_launch();
  EXPECT_NE(std::getenv("PMI_FD"), nullptr);
  close(ends[1]);
  remember_launcher();
  {
    const Variable two("PMI_SIZE", "2");
    EXPECT_THROW(leave_used_launch(), Error);
  }
  leave_used_launch();
  EXPECT_EQ(std::getenv("PMI_FD"), nullptr);
  EXPECT_EQ(std::getenv("PMI_SIZE"), nullptr);
  EXPECT_FALSE(launcher_is_gone());
  close(ends[0]);
}

/// Asks `calls` times in a child process, which then exits with 0.
void ask(int calls, bool finalizing) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) std::_Exit(9);
  const Variable rank("PMI_RANK", "3"), connection("PMI_FD", std::to_string(ends[0]));
  remember_launcher();
  close(ends[1]);
  if (finalizing) expect_closed_connection();
  for (int i = 0; i < calls; ++i) end_without_launcher();
  std::_Exit(0);
}

TEST(Launch, IsLostOnceItWasGoneThreeTimes) {
  EXPECT_EXIT(ask(2, false), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ask(3, false), testing::ExitedWithCode(1), "rank 3 on .*: its launcher is gone");
}

TEST(Launch, MayCloseItsConnectionWhileMpiFinalizes) {
  EXPECT_EXIT(ask(3, true), testing::ExitedWithCode(0), "");
  EXPECT_EXIT(ask(60, true), testing::ExitedWithCode(1), "its launcher is gone");
}

/// Hydra's end of a connection: expects a command and answers it, a moment later.
bool answer(int end, const std::string& command, const std::string& reply) {
  std::string text(command.size(), ' ');
  const bool is_expected =
      read(end, text.data(), text.size()) == static_cast<ssize_t>(text.size()) && text == command;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  return is_expected && write(end, reply.data(), reply.size()) > 0;
}

struct Hydra {
  Hydra() {
    socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
    setenv("PMI_FD", std::to_string(ends[0]).c_str(), 1);
    remember_launcher();
  }
  ~Hydra() {
    close(ends[0]);
    close(ends[1]);
  }
  Hydra(const Hydra&) = delete;
  Hydra& operator=(const Hydra&) = delete;

  int ends[2];
};

TEST(Launch, OfHydraIsLeftOnceAllRanksAreThere) {
  const Variable rank("PMI_RANK", "3"), connection("PMI_FD", "-1"), hydra("HYDI_CONTROL_FD", "0");
  const Hydra launcher;
  bool is_in_order = false;
  std::thread answers([&, end = launcher.ends[1]] {
    is_in_order = answer(end, "cmd=barrier_in\n", "cmd=barrier_out\n") &&
                  answer(end, "cmd=finalize\n", "cmd=finalize_ack rc=0\n");
  });
  int calls = 0;
  EXPECT_TRUE(leave_hydra([&] { ++calls; }));
  answers.join();
  EXPECT_TRUE(is_in_order);
  EXPECT_GT(calls, 2);
}

TEST(Launch, OfHydraIsNotLeftIfItSaysSomethingElse) {
  const Variable rank("PMI_RANK", "3"), connection("PMI_FD", "-1"), hydra("HYDI_CONTROL_FD", "0");
  const Hydra launcher;
  std::thread answers(
      [end = launcher.ends[1]] { answer(end, "cmd=barrier_in\n", "cmd=response\n"); });
  EXPECT_FALSE(leave_hydra([] {}));
  answers.join();
}

TEST(Launch, WithoutAConnectionIsNotLeft) {
  const Variable rank("PMI_RANK", "3"), connection("PMI_FD", "-1"), hydra("HYDI_CONTROL_FD", "0");
  remember_launcher();
  EXPECT_FALSE(leave_hydra([] {}));
}

TEST(Launch, WithoutALauncherNobodyCanBeGone) {
  remember_launcher();
  EXPECT_FALSE(launcher_is_gone());
}

}  // namespace
}  // namespace kzero::runtime
