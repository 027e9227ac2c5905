// Gathers into memory that the ranks of a node share: nothing is written while a rank still reads
// what was there, and everything has arrived when a rank's wait ends.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <thread>

#include "base/wait.hpp"
#include "comm/gather.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/node_window.hpp"
#include "comm/traffic.hpp"
#include "grid/process_grid.hpp"
#include "tensor/view.hpp"

namespace kzero::comm {
namespace {

constexpr Index shard = 40000;  // more than a chunk between nodes

float value_of(Index round, Index rank) { return static_cast<float>(100 * round + rank); }

class NodeGather : public testing::TestWithParam<std::tuple<Overlap, Waits>> {
 protected:
  /// On nodes of `node_ranks` ranks.
  void expect_whole_rounds(int node_ranks) {
    const int ranks = grid::world_group().size();
    std::vector<int> nodes;
    for (int rank = 0; rank < ranks; ++rank) nodes.push_back(rank / node_ranks);
    const grid::ProcessGrid grid(0, 1, nodes);
    const NodeShape& shape = grid.data().shape();
    const Index me = grid.data().rank();
    const auto [overlap, waits] = GetParam();
    Traffic traffic;
    MpiCommunicator comm(overlap, grid.data(), traffic, mpi_reach(), waits);
    const NodeWindow window(grid.node(), ranks * shard * static_cast<Index>(sizeof(float)), "");
    auto* const unit = reinterpret_cast<float*>(window.data());
    const Execution stream;
    Index wrong = 0;
    const auto read = [&](Index round) {
      for (Index i = 0; i < ranks * shard; ++i)
        wrong += unit[i] == (round == 0 ? 0 : value_of(round, i / shard)) ? 0 : 1;
    };
    std::vector<float> mine(static_cast<std::size_t>(shard));
    const Index first = shape.rank_at(shape.place_of(me), 0);
    for (Index round = 1; round <= 12; ++round) {
      if (round % ranks == me) std::this_thread::sleep_for(std::chrono::milliseconds(5));
      read(round - 1);
      std::ranges::fill(mine, value_of(round, me));
      comm.wait(stream, comm.begin_gather_for_node(
                            stream, ConstSpan::of(mine.data(), shard),
                            spans(unit + first * shard, shape.nodes, shard, {0, shard}),
                            Purpose::parameters));
      read(round);
    }
    EXPECT_EQ(wrong, 0);
    const Volume sent = traffic.outside().begin()->second;
    EXPECT_EQ(sent.elements, 12 * (shape.nodes - 1) * shard);
    EXPECT_EQ(sent.bytes_between_nodes, sent.bytes) << "nothing is sent within a node";
  }
};

TEST_P(NodeGather, WaitsForReadersAndWriters) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const int ranks = grid::world_group().size();
  int tried = 0;
  for (int node_ranks = 2; node_ranks < ranks; ++node_ranks) {
    if (ranks % node_ranks == 0) expect_whole_rounds(node_ranks), ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "two nodes of two ranks are four";
}

// The first rank of each node is late until another one has registered its wait.
TEST(NodeGatherWait, IsSeenByTheWatchdog) {
  if (!tensor::on_host) GTEST_SKIP() << "devices do not share memory";
  const int ranks = grid::world_group().size();
  if (ranks != 4) GTEST_SKIP() << "two nodes of two ranks are four";
  const grid::ProcessGrid grid(0, 1, std::vector<int>{0, 0, 1, 1});
  Traffic traffic;
  MpiCommunicator comm(Overlap::yes, grid.data(), traffic);
  constexpr Index bytes = 64;
  const NodeWindow window(grid.node(), (1 + ranks) * bytes, "");
  const std::atomic_ref<int> is_seen(*reinterpret_cast<int*>(window.data() + ranks * bytes));
  const auto in_time = [end = std::chrono::steady_clock::now() + std::chrono::seconds(30)] {
    std::this_thread::yield();
    return std::chrono::steady_clock::now() < end;
  };
  const Execution stream;
  const std::vector<float> mine(16, 1.0F);
  const auto begin = [&] {
    auto* const part = reinterpret_cast<float*>(window.data() + 2 * grid.node().rank() * bytes);
    return comm.begin_gather_for_node(stream, ConstSpan::of(mine.data(), 16),
                                      spans(part, 2, 16, {0, 16}), Purpose::parameters);
  };
  if (grid.node().is_root()) {
    while (is_seen == 0 && in_time()) continue;
    comm.wait(stream, begin());
    return;
  }
  const Request request = begin();
  std::optional<Wait> found;
  while ((!found || found->group != "node") && in_time()) found = longest_wait();
  is_seen = 1;
  comm.wait(stream, request);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->group, "node");
  EXPECT_EQ(found->what, "all_gather of parameters");
}

INSTANTIATE_TEST_SUITE_P(Movements, NodeGather,
                         testing::Values(std::tuple(Overlap::no, Waits::spin),
                                         std::tuple(Overlap::no, Waits::yield),
                                         std::tuple(Overlap::yes, Waits::yield)));

}  // namespace
}  // namespace kzero::comm
