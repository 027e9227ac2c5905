#include "runtime/heartbeat.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <thread>

namespace kzero::runtime {
namespace {

using Kind = Silence::Kind;
using std::chrono::milliseconds;

constexpr std::uint64_t launch = 4711;
constexpr double silence_limit = 1.5;  // seconds

/// One process of a launch, simulated by a thread.
class Process {
 public:
  explicit Process(std::uint32_t rank) : rank_(rank) {}

  HeartbeatPeer peer() const { return {rank_, "node" + std::to_string(rank_), {at_}}; }

  void start(HeartbeatPlan plan) {
    plan.run = launch;
    plan.rank = rank_;
    plan.silence = silence_limit;
    heartbeat_ = std::make_unique<Heartbeat>(std::move(socket_), std::move(plan),
                                             [this](const Silence& silence) { note(silence); });
  }
  void end() { heartbeat_.reset(); }

  /// Waits for an alarm.
  std::optional<Silence> alarm() {
    auto future = raised_.get_future();
    if (future.wait_for(std::chrono::seconds(30)) != std::future_status::ready) return std::nullopt;
    return future.get();
  }
  bool is_quiet() const { return alarms_ == 0; }
  int unheard() const { return unheard_; }

 private:
  void note(const Silence& silence) {
    if (silence.kind == Kind::never_heard) {
      ++unheard_;
    } else if (alarms_++ == 0) {
      raised_.set_value(silence);
    }
  }

  std::uint32_t rank_;
  DatagramSocket socket_;
  Endpoint at_ = socket_.loopback();
  std::promise<Silence> raised_;
  std::atomic<int> alarms_ = 0, unheard_ = 0;
  std::unique_ptr<Heartbeat> heartbeat_;
};

/// Shows signs of life for a while and then stops, like a node that loses power.
class DyingPeer {
 public:
  explicit DyingPeer(std::uint32_t rank) : rank_(rank) {}

  HeartbeatPeer peer() const { return {rank_, "node" + std::to_string(rank_), {at_}}; }

  void show_life(const HeartbeatPeer& to) const {
    struct {
      std::uint64_t run = launch;
      std::uint32_t message = 0, rank = 0;
    } datagram;
    datagram.rank = rank_;
    socket_.send(to.endpoints.front(), std::as_bytes(std::span(&datagram, 1)));
  }

 private:
  std::uint32_t rank_;
  DatagramSocket socket_;
  Endpoint at_ = socket_.loopback();
};

TEST(Heartbeat, NamesThePeerThatFellSilentAndTellsTheOthers) {
  const DyingPeer dying(0);
  Process watcher(1), other(2);
  watcher.start({.watched = {dying.peer(), other.peer()}, .told = {dying.peer(), other.peer()}});
  other.start({.watched = {watcher.peer()}});
  for (int i = 0; i < 3; ++i) {
    dying.show_life(watcher.peer());
    std::this_thread::sleep_for(milliseconds(100));
  }
  const auto seen = watcher.alarm();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->kind, Kind::peer);
  EXPECT_EQ(seen->names, std::vector<std::string>{"node0"});
  EXPECT_GE(seen->seconds, silence_limit);
  const auto told = other.alarm();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::told);
}

TEST(Heartbeat, ThatHearsNobodySaysThatItMayBeCutOffItself) {
  const DyingPeer before(0), after(2);
  Process watcher(1);
  watcher.start({.watched = {before.peer(), after.peer()}});
  before.show_life(watcher.peer());
  after.show_life(watcher.peer());
  const auto seen = watcher.alarm();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->kind, Kind::all);
  EXPECT_EQ(seen->names, (std::vector<std::string>{"node0", "node2"}));
}

TEST(Heartbeat, IsQuietWhileAllLiveAndAfterTheyEndedInOrder) {
  Process first(0), second(1);
  const HeartbeatPeer one = first.peer(), two = second.peer();
  first.start({.watched = {two}, .told = {two}});
  second.start({.watched = {one}, .told = {one}});
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * silence_limit));
  second.end();
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * silence_limit));
  EXPECT_TRUE(first.is_quiet());
  EXPECT_TRUE(second.is_quiet());
  EXPECT_EQ(first.unheard() + second.unheard(), 0);
}

TEST(Heartbeat, TellsTheRanksOfItsNodeThatWatchIt) {
  const DyingPeer dying(0);
  Process first(2), follower(3);
  const HeartbeatPeer to_watch = first.peer();
  first.start({.watched = {dying.peer()}, .followers = 1});
  follower.start({.watched = {to_watch}});
  for (int i = 0; i < 3; ++i) {
    dying.show_life(to_watch);
    std::this_thread::sleep_for(milliseconds(100));
  }
  ASSERT_TRUE(first.alarm());
  const auto told = follower.alarm();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::told);
}

TEST(Heartbeat, MentionsAPeerThatWasNeverHeardAndRaisesNoAlarm) {
  const DyingPeer mute(0);
  Process watcher(1);
  watcher.start({.watched = {mute.peer()}});
  for (int i = 0; i < 300 && watcher.unheard() == 0; ++i)
    std::this_thread::sleep_for(milliseconds(100));
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * silence_limit));
  EXPECT_EQ(watcher.unheard(), 1);
  EXPECT_TRUE(watcher.is_quiet());
}

TEST(Heartbeat, IgnoresDatagramsOfOtherLaunches) {
  const DyingPeer stranger(0);
  Process watcher(1);
  HeartbeatPeer peer = watcher.peer();
  watcher.start({.watched = {stranger.peer()}});
  struct {
    std::uint64_t run = launch + 1;
    std::uint32_t message = 2, rank = 0;  // an alarm
  } datagram;
  const DatagramSocket socket;
  socket.send(peer.endpoints.front(), std::as_bytes(std::span(&datagram, 1)));
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(watcher.is_quiet());
}

}  // namespace
}  // namespace kzero::runtime
