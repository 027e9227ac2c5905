// Times on a network of two levels against numbers computed by hand: 1 byte sent by every rank.
#include "plan/network.hpp"

#include <gtest/gtest.h>

namespace kzero::plan {
namespace {

// A rank sends 100 within its node and 10 out of it; a node sends 32.
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

// Every fourth rank's successor is in the next node: one ring leaves a node, at its rank's rate.
TEST(Ring, OfAllRanksLeavesEachNodeOnce) { EXPECT_DOUBLE_EQ(ring(8, 8, 1), 1.0 / 10); }

// With stride 4, as for tensor groups of 4, all four ranks of a node send out: 32 / 4 for each,
// less than the 10 that one could send alone. With stride 2 two do: 32 / 2 is more than a rank can
// send.
TEST(Ring, SharesWhatANodeSends) {
  EXPECT_DOUBLE_EQ(ring(64, 16, 4), 4.0 / 32);
  EXPECT_DOUBLE_EQ(ring(64, 32, 2), 1.0 / 10);
}

// Groups of 8 over two nodes of 4: position 3's successor is in the next node, 7's in the first.
TEST(Ring, OfATensorGroupLongerThanANodeLeavesIt) { EXPECT_DOUBLE_EQ(ring(64, 8, 1), 1.0 / 10); }

// Groups of 3: {3, 4, 5} lies in two nodes, so 3 sends out and 5 sends back; {6, 7, 8} likewise.
// Node 1 (4 to 7) has 5 and 7 sending out.
TEST(Ring, OfAGroupThatStraddlesNodes) {
  EXPECT_DOUBLE_EQ(ring(12, 3, 1), 1.0 / 10);
  const Network narrow{4, 100, 10, 8};
  EXPECT_DOUBLE_EQ(seconds_per_byte(narrow, {12, 3, 1}, Pattern::ring), 2.0 / 8);
}

// The last node holds 2 of 6 ranks.
TEST(Ring, OfALastNodeThatIsNotFull) {
  EXPECT_DOUBLE_EQ(ring(6, 6, 1), 1.0 / 10);
  EXPECT_DOUBLE_EQ(ring(6, 2, 1), 1.0 / 100);
}

// Of 8 ranks in two nodes a rank sends 4/7 of its bytes out: the node's four together 16/7.
TEST(Exchange, SendsOutWhatIsForOtherNodes) {
  EXPECT_DOUBLE_EQ(exchange(4, 4, 1), 1.0 / 100);
  EXPECT_DOUBLE_EQ(exchange(8, 8, 1), 16.0 / 7 / 32);
  // 16 nodes, one member in each: all bytes leave, of four groups in each node.
  EXPECT_DOUBLE_EQ(exchange(64, 16, 4), 4.0 / 32);
  // 16 nodes, two members in each: 30/31 leave.
  EXPECT_DOUBLE_EQ(exchange(64, 32, 2), 4 * 30.0 / 31 / 32);
}

TEST(Exchange, OfALastNodeThatIsNotFull) {
  // Nodes of 4 and 2 ranks: of the second one's ranks 4/5 leaves, which is the slowest rank: 0.08 s
  // for 10; of the first one's 2/5, and 4 of them share 32: 0.05 s.
  EXPECT_DOUBLE_EQ(exchange(6, 6, 1), 0.8 / 10);
}

}  // namespace
}  // namespace kzero::plan
