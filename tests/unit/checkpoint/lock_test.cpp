// Only one run at a time uses a folder. A dead run does not block others.
#include "checkpoint/folder/lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <ctime>

#include "base/abandoned_run.hpp"
#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

using std::chrono::milliseconds;

constexpr LockTimes quick{.beat = 0.02, .silence = 0.6, .grace = 0.1};

/// Each rank has its own folder. Nothing here is collective.
class Lock : public CheckpointTest {
 protected:
  Lock() : own(folder / std::to_string(world.rank())), path(own / lock_name) {
    fs::create_directories(own);
  }

  std::unique_ptr<FolderLock> take(const Owner& owner = this_process()) {
    return std::make_unique<FolderLock>(
        own, [this](const std::string& text) { words.push_back(text); }, owner, quick);
  }
  std::string refusal(const Owner& owner = this_process()) {
    return error_of(ExitCode::files, [&] { take(owner); });
  }
  void write_lock(const Owner& owner) const { std::ofstream(path) << pack(owner); }

  /// A process that has ended and has not been waited for.
  static Owner zombie() {
    Owner owner = this_process();
    const pid_t child = ::fork();
    if (child == 0) ::_exit(0);
    siginfo_t ended{};
    EXPECT_EQ(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT), 0);
    owner.pid = child;
    return owner;
  }

  static Owner elsewhere() {
    Owner owner = this_process();
    owner.host = "node7";
    owner.machine = "another";
    return owner;
  }

  fs::path own, path;
  std::vector<std::string> words;
};

TEST_F(Lock, IsHeldByOneAndGivenBack) {
  {
    const auto lock = take();
    EXPECT_NO_THROW(lock->require_held());
    const std::string text = refusal();
    EXPECT_TRUE(contains(text, fmt::format("process {} on ", ::getpid()))) << text;
    EXPECT_TRUE(contains(text, "choose another checkpoint.folder")) << text;
    EXPECT_NO_THROW(lock->require_held());
  }
  EXPECT_FALSE(fs::exists(path));
  EXPECT_NO_THROW(take());
  EXPECT_TRUE(words.empty()) << all_of(words);
}

TEST_F(Lock, OfADeadProcessIsTakenOverWithAWord) {
  const Owner dead = zombie();
  Owner reused = this_process();  // its pid now belongs to another process
  reused.start = "1";
  Owner forged = this_process();  // the kernel would truncate this number to a living process's pid
  forged.pid += Index{1} << 32;
  for (const Owner& owner : {dead, reused, forged}) {
    words.clear();
    write_lock(owner);
    const auto lock = take();
    ASSERT_EQ(words.size(), 1U);
    EXPECT_TRUE(contains(words[0], fmt::format("taken over from process {}", owner.pid)));
  }
  ::waitpid(static_cast<pid_t>(dead.pid), nullptr, 0);
}

TEST_F(Lock, OfAnotherMachineIsWatched) {
  write_lock(elsewhere());
  std::atomic<bool> ending = false;
  std::thread alive([&] {
    while (!ending) {
      std::this_thread::sleep_for(milliseconds(20));
      ::utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
    }
  });
  EXPECT_TRUE(contains(refusal(), "on node7"));
  ending = true;
  alive.join();
  EXPECT_EQ(words.size(), 1U) << all_of(words);
  const auto lock = take();  // after a silence
  EXPECT_TRUE(contains(words.back(), "taken over")) << all_of(words);
}

/// A process of this machine before it lost power. The lock is as old as the power cut.
TEST_F(Lock, FromBeforeThisMachineBootedIsTakenAtOnce) {
  Owner before = this_process();
  before.machine = "another-boot pid:[4026531836]";
  before.system = "1234";  // not all systems of tests have a number
  write_lock(before);
  constexpr timespec long_ago{.tv_sec = 1, .tv_nsec = 0};
  const std::array<timespec, 2> times{long_ago, long_ago};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times.data(), 0), 0);
  Owner now = this_process();
  now.system = before.system;
  const auto lock = take(now);
  ASSERT_EQ(words.size(), 1U) << all_of(words);
  EXPECT_TRUE(contains(words[0], "taken over from process")) << words[0];
}

TEST_F(Lock, FromBeforeABootCountsOnlyForThisMachine) {
  Owner now = this_process();
  now.system = "1234";
  Owner before = now;
  before.machine = "another-boot pid:[4026531836]";
  EXPECT_EQ(life_of(before, now, 1), Life::gone);
  EXPECT_EQ(life_of(before, now, std::time(nullptr)), Life::unknown) << "its clone lives";
  for (const auto field : {&Owner::host, &Owner::system}) {
    Owner other = before;
    other.*field = "another";
    EXPECT_EQ(life_of(other, now, 1), Life::unknown);
  }
  before.system = "";
  EXPECT_EQ(life_of(before, now, 1), Life::unknown) << "as earlier versions of kzero wrote it";
}

TEST_F(Lock, ShowsSignsOfLife) {
  const auto lock = take(elsewhere());  // as other processes on this machine see it
  Owner other = this_process();
  std::this_thread::sleep_for(milliseconds(700));
  EXPECT_TRUE(contains(refusal(other), "on node7"));
}

TEST_F(Lock, OfTheSameJobSubmittedAgainIsTakenAtOnce) {
  Owner before = elsewhere();
  before.job = "4711";
  before.restart = "0";
  write_lock(before);
  Owner now = this_process();
  now.job = "4711";
  now.restart = "1";
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(life_of(before, now, std::time(nullptr)), Life::gone);
  const auto lock = take(now);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  now.restart = "0";
  EXPECT_EQ(life_of(before, now, std::time(nullptr)), Life::unknown)
      << "two launches within one job";
}

TEST_F(Lock, OfAnEarlierLaunchOfTheSameJobIsTakenAtOnce) {
  Owner before = elsewhere();
  before.job = "4711";
  before.launch = "9";
  write_lock(before);
  Owner now = this_process();
  now.job = "4711";
  now.launch = "10";
  EXPECT_EQ(life_of(before, now, std::time(nullptr)), Life::gone);
  const auto lock = take(now);
  EXPECT_EQ(life_of(now, before, std::time(nullptr)), Life::unknown)
      << "a later launch is not gone";
}

TEST_F(Lock, FallsSilentOnceItsRunIsGivenUp) {
  const pid_t child = ::fork();  // a run is given up for the rest of a process's lifetime
  if (child == 0) {
    const auto lock = take(elsewhere());
    abandon_run();
    std::this_thread::sleep_for(milliseconds(300));
    const auto before = fs::last_write_time(path);
    std::this_thread::sleep_for(milliseconds(600));
    ::_exit(fs::last_write_time(path) == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST_F(Lock, ThatWasLostIsNoticedAndLeftAlone) {
  {
    const auto lock = take();
    write_lock(elsewhere());
    const std::string text = error_of(ExitCode::files, [&] { lock->require_held(); });
    EXPECT_TRUE(contains(text, "on node7")) << text;
  }
  EXPECT_TRUE(fs::exists(path));
}

TEST_F(Lock, ThatWasRemovedIsMadeAgain) {
  const auto lock = take();
  fs::remove_all(own);
  lock->require_held();
  EXPECT_TRUE(contains(refusal(), "another run writes"));
}

TEST_F(Lock, IsWonByOneOfMany) {
  for (const bool stale : {false, true}) {
    const Owner dead = zombie();
    if (stale) write_lock(dead);
    std::atomic<int> won = 0, refused = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&] {
        try {
          const FolderLock lock(
              own, [](const std::string&) {}, this_process(), quick);
          ++won;
          while (won + refused < 8) std::this_thread::sleep_for(milliseconds(5));
        } catch (const Error&) {
          ++refused;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(won, 1);
    EXPECT_TRUE(fs::is_empty(own));
    ::waitpid(static_cast<pid_t>(dead.pid), nullptr, 0);
  }
}

TEST_F(Lock, TakeoversThatWereCutShortDoNotMatter) {
  const Owner dead = zombie();
  write_lock(dead);
  std::ofstream(own / "lock.takeover") << pack(dead);
  const auto lock = take();
  EXPECT_FALSE(fs::exists(own / "lock.takeover"));
  ::waitpid(static_cast<pid_t>(dead.pid), nullptr, 0);
}

TEST_F(Lock, OfNobodyIsWatchedAndOtherThingsAreNamed) {
  std::ofstream(path) << "";
  EXPECT_NO_THROW(take());
  EXPECT_TRUE(contains(all_of(words), "a run that has not said its name"));
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(contains(refusal(), "it is not a regular file"));
  fs::remove(path);
  fs::create_symlink(own / "nowhere", path);
  EXPECT_TRUE(contains(refusal(), "cannot be read"));
}

TEST_F(Lock, ShowsNoControlCharacters) {
  Owner owner = elsewhere();
  owner.user = "\x1b[31mann\x07";
  EXPECT_EQ(unpack_owner(pack(owner)).user, R"(\x1b[31mann\x07)");
}

}  // namespace

}  // namespace kzero::checkpoint
