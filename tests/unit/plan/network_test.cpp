// Compares times on a two-level network with numbers computed by hand. Every rank sends 1 byte.
#include "plan/network.hpp"

#include <gtest/gtest.h>

namespace kzero::plan {
namespace {

// A rank sends 100 within its node and 10 out of it. A node sends 32.
constexpr Network nodes_of_4{4, 100, 10, 32};

double ring(Index ranks, Index size, Index stride) {
  return seconds_per_byte(nodes_of_4, {ranks, size, stride}, Pattern::ring);
}

double exchange(Index ranks, Index size, Index stride) {
  return seconds_per_byte(nodes_of_4, {ranks, size, stride}, Pattern::exchange);
}

TEST(Ring, WithinNodesKnowsNothingOfTheNetwork) {
  EXPECT_DOUBLE_EQ(ring(4, 4, 1), 1.0 / 100);
  EXPECT_DOUBLE_EQ(ring(64, 4, 1), 1.0 / 100) << "16 tensor groups, each in its node";
  EXPECT_DOUBLE_EQ(ring(64, 2, 2), 1.0 / 100) << "ranks 0 and 2, 1 and 3 of a node";
}

TEST(Ring, OfOneRankSendsNothing) {
  EXPECT_EQ(ring(4, 1, 1), 0);
  EXPECT_EQ(exchange(4, 1, 4), 0);
}

// The successor of every fourth rank is on the next node. One ring leaves a node, at its rank's
// rate.
TEST(Ring, OfAllRanksLeavesEachNodeOnce) { EXPECT_DOUBLE_EQ(ring(8, 8, 1), 1.0 / 10); }

// Each of several rings leaves a node over an adapter of its own, up to what the node can send.
TEST(Ring, SeveralShareANodesAdapters) {
  Network network = nodes_of_4;
  network.rings = 2;
  EXPECT_DOUBLE_EQ(seconds_per_byte(network, {8, 8, 1}, Pattern::ring), 1.0 / 20);
  network.rings = 8;
  EXPECT_DOUBLE_EQ(seconds_per_byte(network, {8, 8, 1}, Pattern::ring), 1.0 / 32);
  EXPECT_DOUBLE_EQ(seconds_per_byte(network, {64, 16, 4}, Pattern::ring), 4.0 / 32);
  EXPECT_DOUBLE_EQ(seconds_per_byte(network, {8, 8, 1}, Pattern::exchange), exchange(8, 8, 1));
}

// With stride 4, as for tensor groups of 4, all four ranks of a node send out: 32 / 4 each, which
// is less than the 10 of a single rank. With stride 2 two ranks send out: 32 / 2 is more than a
// rank can send.
TEST(Ring, SharesWhatANodeSends) {
  EXPECT_DOUBLE_EQ(ring(64, 16, 4), 4.0 / 32);
  EXPECT_DOUBLE_EQ(ring(64, 32, 2), 1.0 / 10);
}

// Groups of 8 over two nodes of 4. The successor of position 3 is on the next node, that of
// position 7 on the first.
TEST(Ring, OfATensorGroupLongerThanANodeLeavesIt) { EXPECT_DOUBLE_EQ(ring(64, 8, 1), 1.0 / 10); }

// Groups of 3. {3, 4, 5} spans two nodes, so 3 sends out and 5 sends back. The same holds for {6,
// 7, 8}. On node 1 (4 to 7), 5 and 7 send out.
TEST(Ring, OfAGroupThatStraddlesNodes) {
  EXPECT_DOUBLE_EQ(ring(12, 3, 1), 1.0 / 10);
  const Network narrow{4, 100, 10, 8};
  EXPECT_DOUBLE_EQ(seconds_per_byte(narrow, {12, 3, 1}, Pattern::ring), 2.0 / 8);
}

// The last node holds 2 of the 6 ranks.
TEST(Ring, OfALastNodeThatIsNotFull) {
  EXPECT_DOUBLE_EQ(ring(6, 6, 1), 1.0 / 10);
  EXPECT_DOUBLE_EQ(ring(6, 2, 1), 1.0 / 100);
}

// With 8 ranks on two nodes, a rank sends 4/7 of its bytes out. The node's four ranks together send
// 16/7.
TEST(Exchange, SendsOutWhatIsForOtherNodes) {
  EXPECT_DOUBLE_EQ(exchange(4, 4, 1), 1.0 / 100);
  EXPECT_DOUBLE_EQ(exchange(8, 8, 1), 16.0 / 7 / 32);
  // 16 nodes with one member each: all bytes leave, for four groups on each node.
  EXPECT_DOUBLE_EQ(exchange(64, 16, 4), 4.0 / 32);
  // 16 nodes with two members each: 30/31 of the bytes leave.
  EXPECT_DOUBLE_EQ(exchange(64, 32, 2), 4 * 30.0 / 31 / 32);
}

TEST(Exchange, OfALastNodeThatIsNotFull) {
  // Nodes of 4 and 2 ranks. Each rank of the second node sends 4/5 out at a rate of 10, which takes
  // 0.08 s and is the slowest. Each rank of the first node sends 2/5, and its four ranks share 32,
  // which takes 0.05 s.
  EXPECT_DOUBLE_EQ(exchange(6, 6, 1), 0.8 / 10);
}

// With 8 ranks on two nodes, 3/7 stay within the node. The rest follows at 32 / 4 a rank.
TEST(Swaps, AreOneAfterAnother) {
  const auto swaps = [](Index ranks, Index size, Index stride) {
    return seconds_per_byte(nodes_of_4, {ranks, size, stride}, Pattern::swaps);
  };
  EXPECT_DOUBLE_EQ(swaps(4, 4, 1), 1.0 / 100);
  EXPECT_DOUBLE_EQ(swaps(8, 8, 1), 3.0 / 7 / 100 + 4.0 / 7 / 8);
  EXPECT_DOUBLE_EQ(swaps(64, 16, 4), 1.0 / 8) << "all leave the node";
  EXPECT_EQ(swaps(4, 1, 4), 0);
}

/// 300 bytes within a node in 3 messages, and 80 to other nodes in 2.
Collective collective(Pattern pattern) { return {pattern, 300, 80, 3, 2}; }

TEST(Seconds, AddLatenciesToEachPattern) {
  Network network = nodes_of_4;
  network.within_latency = 0.5, network.between_latency = 2;
  const double ring_byte = seconds_per_byte(network, {8, 8, 1}, Pattern::ring);
  const auto seconds = [&](Pattern pattern, Index sharing) {
    return use_of(network, sharing, ring_byte, collective(pattern)).seconds;
  };
  const double latency = 3 * 0.5 + 2 * 2;
  EXPECT_DOUBLE_EQ(seconds(Pattern::swaps, 4), latency + 300.0 / 100 + 80 / (32.0 / 4));
  EXPECT_DOUBLE_EQ(seconds(Pattern::swaps, 2), latency + 3 + 80.0 / 10) << "a rank's own limit";
  EXPECT_DOUBLE_EQ(seconds(Pattern::exchange, 4), latency + 80 / (32.0 / 4)) << "at once";
  EXPECT_DOUBLE_EQ(seconds(Pattern::ring, 4), latency + 380.0 / 10) << "the slowest hop";
}

TEST(Seconds, OfOneRateAreBytesOverIt) {
  const Network network = uniform_network(20);
  for (const Pattern pattern : {Pattern::ring, Pattern::exchange, Pattern::swaps})
    EXPECT_DOUBLE_EQ(use_of(network, 4, 1.0 / 20, collective(pattern)).seconds, 380.0 / 20);
}

void expect_use(const LinkUse& use, Link link, double busy, double end) {
  EXPECT_DOUBLE_EQ(use[link].busy, busy) << static_cast<int>(link);
  EXPECT_DOUBLE_EQ(use[link].end, end) << static_cast<int>(link);
}

// 3 seconds within the node and 10 between nodes, with messages of 0.5 and 2 seconds more.
TEST(Links, AreUsedInTurnsOrAtOnce) {
  Network network = nodes_of_4;
  network.within_latency = 0.5, network.between_latency = 2;
  const auto use = [&](Pattern pattern) {
    return use_of(network, 4, 1.0 / 10, collective(pattern));
  };
  const LinkUse swaps = use(Pattern::swaps);
  expect_use(swaps, Link::between, 4 + 10, 4 + 10);
  expect_use(swaps, Link::within, 1.5 + 3, swaps.seconds);
  const LinkUse exchange = use(Pattern::exchange);
  expect_use(exchange, Link::between, 4 + 10, 4 + 10);
  expect_use(exchange, Link::within, 1.5 + 3, 1.5 + 3);
  const LinkUse ring = use(Pattern::ring);
  expect_use(ring, Link::between, ring.seconds, ring.seconds);
  expect_use(ring, Link::within, 380.0 / 100, 380.0 / 100);
  for (const LinkUse& one : {swaps, exchange, ring}) expect_use(one, Link::host, 0, 0);
}

TEST(Links, OfARankWithOneRateAreOne) {
  const LinkUse use = use_of(uniform_network(20), 4, 1.0 / 20, collective(Pattern::exchange));
  expect_use(use, Link::within, 19, 19);
  expect_use(use, Link::between, 0, 0);
}

TEST(Links, OfMessagesInTurnAddUp) {
  const LinkUse both = LinkUse::of(Link::within, 2).then(LinkUse::of(Link::between, 3));
  EXPECT_EQ(both.seconds, 5);
  expect_use(both, Link::within, 2, 2);
  expect_use(both, Link::between, 3, 5);
  const LinkUse twice = both.repeated(2);
  EXPECT_EQ(twice.seconds, 10);
  expect_use(twice, Link::within, 4, 7);
  expect_use(twice, Link::between, 6, 10);
}

}  // namespace
}  // namespace kzero::plan
