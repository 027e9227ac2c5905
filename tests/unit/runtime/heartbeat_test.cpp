#include "runtime/heartbeat.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <future>
#include <memory>
#include <optional>
#include <thread>

namespace kzero::runtime {
namespace {

using Kind = Silence::Kind;
using std::chrono::milliseconds;

constexpr SipKey launch{4711, 815};
constexpr double silence_limit = 1.5;  // seconds

/// One process of a launch, simulated by a thread.
class Process {
 public:
  explicit Process(std::uint32_t rank) : rank_(rank) {}

  HeartbeatPeer peer() const { return {rank_, "node" + std::to_string(rank_), {at_}}; }

  void start(HeartbeatPlan plan) {
    plan.key = launch;
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

  void show_life(const HeartbeatPeer& to) const { send(HeartbeatMessage::Kind::alive, to); }

  void send(HeartbeatMessage::Kind kind, const HeartbeatPeer& to) const {
    socket_.send(to.endpoints.front(),
                 seal({.kind = kind, .from = rank_, .to = to.rank, .counter = ++sent_}, launch));
  }

  /// The next datagram that arrives.
  std::optional<SealedMessage> received(
      std::chrono::seconds patience = std::chrono::seconds(30)) const {
    SealedMessage room{};
    const auto one = socket_.receive(room, patience);
    return one && one->bytes == room.size() ? std::optional(room) : std::nullopt;
  }

 private:
  mutable std::uint64_t sent_ = 0;
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

TEST(Heartbeat, DoesNotNameAPeerThatEndedInOrder) {
  const DyingPeer dying(0), ended(3);
  Process one_of_three(1), one_of_two(2), other(4);
  one_of_three.start({.watched = {dying.peer(), ended.peer(), other.peer()}});
  one_of_two.start({.watched = {dying.peer(), ended.peer()}});
  other.start({.watched = {one_of_three.peer()}});
  for (Process* watcher : {&one_of_three, &one_of_two}) {
    for (const DyingPeer* peer : {&dying, &ended}) peer->show_life(watcher->peer());
    ended.send(HeartbeatMessage::Kind::ended, watcher->peer());
  }
  for (Process* watcher : {&one_of_three, &one_of_two}) {
    const auto seen = watcher->alarm();
    ASSERT_TRUE(seen);
    EXPECT_EQ(seen->names, std::vector<std::string>{"node0"});
    EXPECT_EQ(seen->kind, Kind::peer) << "the only peer of two that still runs is no majority";
  }
}

TEST(Heartbeat, ForgetsFollowersThatEndedInOrder) {
  const DyingPeer first(0), second(2);
  Process watched(1);
  const HeartbeatPeer to_watch = watched.peer();
  watched.start({.followers = 1});
  first.show_life(to_watch);
  ASSERT_TRUE(first.received());
  first.send(HeartbeatMessage::Kind::ended, to_watch);
  second.show_life(to_watch);
  EXPECT_TRUE(second.received(std::chrono::seconds(5))) << "there is no room for it";
}

/// Runs a heartbeat in a process of its own until `end` is closed. The exit code is 1 after an
/// alarm.
pid_t start_in_child(Process& process, const HeartbeatPlan& plan, const std::array<int, 2>& end) {
  const pid_t child = fork();
  if (child != 0) return child;
  close(end[1]);
  process.start(plan);
  char none = 0;
  while (read(end[0], &none, 1) > 0) continue;
  _exit(process.is_quiet() ? 0 : 1);
}

/// As when a batch system suspends a job and resumes it.
TEST(Heartbeat, DoesNotCountTimeInWhichItsProcessIsSuspended) {
  Process first(0), second(1);
  const HeartbeatPeer one = first.peer(), two = second.peer();
  std::array<int, 2> end{};
  ASSERT_EQ(pipe(end.data()), 0);
  const std::array<pid_t, 2> children{start_in_child(first, {.watched = {two}}, end),
                                      start_in_child(second, {.watched = {one}}, end)};
  const auto wait = [](double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  };
  wait(silence_limit / 2);
  for (const pid_t child : children) kill(child, SIGSTOP);
  wait(2 * silence_limit);
  for (const pid_t child : children) kill(child, SIGCONT);
  wait(silence_limit / 2);
  for (const int side : end) close(side);
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "an alarm, " << status;
  }
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

TEST(Heartbeat, IgnoresWhatIsMadeWithoutItsKey) {
  const DyingPeer stranger(0);
  Process watcher(1);
  const HeartbeatPeer peer = watcher.peer();
  watcher.start({.watched = {stranger.peer()}});
  const auto heard = stranger.received();  // as a listener on a shared address
  ASSERT_TRUE(heard);
  HeartbeatMessage alarm{.kind = HeartbeatMessage::Kind::alarm, .from = 0, .to = 1, .counter = 99};
  SealedMessage copied = seal(alarm, SipKey{launch[0], launch[1] + 1});
  const DatagramSocket socket;
  socket.send(peer.endpoints.front(), copied);
  std::copy(heard->end() - 8, heard->end(), copied.end() - 8);  // the hash of another message
  socket.send(peer.endpoints.front(), copied);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_TRUE(watcher.is_quiet());
  socket.send(peer.endpoints.front(), seal(alarm, launch));
  const auto told = watcher.alarm();
  ASSERT_TRUE(told);
  EXPECT_EQ(told->kind, Kind::told);
}

/// Somebody who records the signs of life of a node can send them again after its death.
TEST(Heartbeat, IsNotDeceivedByRecordedSignsOfLife) {
  const DyingPeer dying(0);
  Process watcher(1);
  const HeartbeatPeer peer = watcher.peer();
  watcher.start({.watched = {dying.peer()}});
  const SealedMessage recorded = seal({.from = 0, .to = 1, .counter = 7}, launch);
  const DatagramSocket socket;
  std::optional<Silence> seen;
  std::thread waits([&] { seen = watcher.alarm(); });
  for (int i = 0; i < 40; ++i) {
    socket.send(peer.endpoints.front(), recorded);
    std::this_thread::sleep_for(milliseconds(100));
  }
  waits.join();
  ASSERT_TRUE(seen);
  EXPECT_EQ(seen->kind, Kind::peer);
}

TEST(HeartbeatInbox, AcceptsEachMessageToItsRankOnce) {
  HeartbeatInbox inbox(launch, 1);
  HeartbeatMessage message{.kind = HeartbeatMessage::Kind::ended, .from = 5, .to = 1, .counter = 3};
  const SealedMessage sealed = seal(message, launch);
  const auto accepted = inbox.accept(sealed);
  ASSERT_TRUE(accepted);
  EXPECT_EQ(accepted->kind, HeartbeatMessage::Kind::ended);
  EXPECT_EQ(accepted->from, 5U);
  EXPECT_FALSE(inbox.accept(sealed));
  message.counter = 2;
  EXPECT_FALSE(inbox.accept(seal(message, launch)));
  message.from = 6;
  EXPECT_TRUE(inbox.accept(seal(message, launch)));
  message.to = 2;
  message.counter = 9;
  EXPECT_FALSE(inbox.accept(seal(message, launch)));
}

TEST(HeartbeatInbox, NoticesEveryChangedBitAndOtherLengths) {
  HeartbeatInbox inbox(launch, 1);
  const SealedMessage sealed = seal({.from = 0, .to = 1, .counter = 1}, launch);
  for (std::size_t bit = 0; bit < 8 * sealed.size(); ++bit) {
    SealedMessage changed = sealed;
    changed[bit / 8] ^= std::byte{1} << (bit % 8);
    EXPECT_FALSE(inbox.accept(changed)) << bit;
  }
  EXPECT_FALSE(inbox.accept(std::span(sealed).first(31)));
  EXPECT_FALSE(inbox.accept({}));
  EXPECT_TRUE(inbox.accept(sealed));
}

/// 172.17.0.1 is the bridge of containers on every node.
TEST(SharedAddresses, AreRemovedFromAllThatHaveThem) {
  const auto at = [](std::uint8_t last, std::uint16_t port) {
    Endpoint endpoint{.address = {}, .port = port};
    endpoint.address[15] = last;
    return endpoint;
  };
  const Endpoint first = at(1, 100), second = at(2, 200);
  std::vector<HeartbeatPeer> peers{{0, "a", {first, at(9, 100)}},
                                   {1, "b", {at(9, 200), second, at(8, 200)}},
                                   {2, "c", {}},
                                   {3, "d", {at(9, 300), at(8, 300)}},
                                   {4, "e", {at(4, 400), at(4, 400)}}};
  remove_shared_addresses(peers);
  EXPECT_EQ(peers[0].endpoints, std::vector{first});
  EXPECT_EQ(peers[1].endpoints, std::vector{second});
  EXPECT_TRUE(peers[2].endpoints.empty());
  EXPECT_TRUE(peers[3].endpoints.empty());
  EXPECT_EQ(peers[4].endpoints.size(), 2U);
}

}  // namespace
}  // namespace kzero::runtime
