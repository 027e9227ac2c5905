#include "metrics/node_times.hpp"

#include <gtest/gtest.h>

namespace kzero::metrics {
namespace {

NodeRow row(std::string host, Index first_rank, double compute, double wait) {
  return {.host = std::move(host),
          .first_rank = first_rank,
          .compute_seconds = compute,
          .wait_seconds = wait};
}

TEST(NodeTable, ListsFewNodes) {
  const NodesRecord record{.steps = 10,
                           .count = 2,
                           .compute = {3, 11.3, 19.6},
                           .wait = {0.4, 8.7, 17},
                           .rows = {row("node3", 0, 19.6, 0.4), row("node1", 1, 3, 17)}};
  EXPECT_EQ(node_table(record),
            "time of a step, 2 nodes           computes       waits\n"
            "  node3                             1.96 s     0.040 s\n"
            "  node1                             0.30 s      1.70 s");
}

TEST(NodeTable, SumsUpTheOthersOfMany) {
  NodesRecord record{.steps = 1, .count = 100, .compute = {1, 1.5, 9}, .wait = {0, 2, 4}};
  for (Index i = 0; i < max_node_rows; ++i)
    record.rows.push_back(
        row("n" + std::to_string(i), i, i < 3 ? 9 - static_cast<double>(i) : 2, 1));
  // 150 - 9 - 8 - 7 = 126 and 200 - 3 = 197, over 97 nodes
  EXPECT_EQ(node_table(record),
            "time of a step, 100 nodes         computes       waits\n"
            "  n0                                9.00 s      1.00 s\n"
            "  n1                                8.00 s      1.00 s\n"
            "  n2                                7.00 s      1.00 s\n"
            "  mean of the other 97              1.30 s      2.03 s");
}

TEST(NodeTable, NamesRanksOfASingleNode) {
  const NodesRecord record{.steps = 2,
                           .by_rank = true,
                           .count = 2,
                           .rows = {row("here", 1, 300, 0.02), row("here", 0, 30, 0.0014)}};
  EXPECT_EQ(node_table(record),
            "time of a step, 2 ranks           computes       waits\n"
            "  rank 1                             150 s     0.010 s\n"
            "  rank 0                            15.0 s    0.0007 s");
}

}  // namespace
}  // namespace kzero::metrics
