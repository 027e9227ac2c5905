#include "comm/flow.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "grid/process_grid.hpp"

namespace kzero::comm {
namespace {

/// Requests that a test ends by hand. They carry nothing.
class Window {
 public:
  explicit Window(Index size) : requests_(size, MPI_REQUEST_NULL) {}

  std::span<MPI_Request> all() { return requests_; }
  static void start(MPI_Request& request) {
    MPI_Recv_init(nullptr, 0, MPI_BYTE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, &request);
  }
  void end(Index place) {
    if (requests_[place] != MPI_REQUEST_NULL) MPI_Request_free(&requests_[place]);
  }

 private:
  std::vector<MPI_Request> requests_;
};

struct Posted {
  int rank;
  Index begin, bytes;

  bool operator==(const Posted&) const = default;
};

/// A span of bytes for each rank of a group, one after another in one buffer.
class Bytes {
 public:
  explicit Bytes(const std::vector<Index>& counts)
      : data_(std::accumulate(counts.begin(), counts.end(), Index{0}) / 4) {
    for (Index begin = 0; const Index count : counts) {
      spans_.push_back(ConstSpan::of(data_.data() + begin / 4, count / 4));
      begin += count;
    }
  }

  std::span<const ConstSpan> spans() const { return spans_; }
  Posted posted(const Flow<ConstSpan>::Chunk& chunk) const {
    return {chunk.rank,
            static_cast<const float*>(chunk.data.data) -
                static_cast<const float*>(spans_[chunk.rank].data),
            chunk.data.bytes()};
  }

 private:
  std::vector<float> data_;
  std::vector<ConstSpan> spans_;
};

/// Posts and ends all chunks, one after another.
std::vector<Posted> order_of(const Bytes& bytes, Direction direction, const grid::Group& group) {
  std::vector<Posted> order;
  Window window(1);
  Flow<ConstSpan> flow(bytes.spans(), direction, group, window.all());
  do {
    window.end(0);
    flow.retire([](const auto&) {});
    flow.fill([&](const auto& chunk, MPI_Request& request) {
      order.push_back(bytes.posted(chunk));
      Window::start(request);
    });
  } while (flow.oldest() >= 0);
  return order;
}

TEST(Flow, GoesFromNeighbourToNeighbourAndSkipsThoseWithoutData) {
  const grid::Group group = grid::world_group();
  const int ranks = group.size(), me = group.rank();
  std::vector<Index> counts(ranks);
  std::vector<Posted> out, in;
  for (int step = 0; step < ranks; ++step) counts[(me + step) % ranks] = step == 2 ? 0 : 8;
  for (int step = 1; step < ranks; ++step) {
    const int to = (me + step) % ranks, from = (me - step + ranks) % ranks;
    if (counts[to] > 0) out.push_back({to, 0, 8});
    if (counts[from] > 0) in.push_back({from, 0, 8});
  }
  const Bytes bytes(counts);
  EXPECT_EQ(order_of(bytes, Direction::out, group), out);
  EXPECT_EQ(order_of(bytes, Direction::in, group), in);
}

TEST(Flow, CutsLargeChunksWithinANodeAndSmallOnesBetweenNodes) {
  grid::Group group = grid::world_group();
  if (group.size() == 1) GTEST_SKIP() << "nobody to send to";
  std::vector<int> nodes(group.size());
  std::iota(nodes.begin(), nodes.end(), 0);
  const int to = (group.rank() + 1) % group.size();
  for (const Index chunk_bytes : {chunk_within_node, chunk_between_nodes}) {
    if (chunk_bytes == chunk_between_nodes) group.set_nodes(nodes, {group.size(), 1});
    std::vector<Index> counts(group.size());
    counts[to] = 2 * chunk_bytes + 4;
    const std::vector<Posted> expected{
        {to, 0, chunk_bytes}, {to, chunk_bytes / 4, chunk_bytes}, {to, 2 * (chunk_bytes / 4), 4}};
    EXPECT_EQ(order_of(Bytes(counts), Direction::out, group), expected);
  }
}

TEST(Flow, KeepsItsOrderIfALaterMessageEndsFirst) {
  const grid::Group group = grid::world_group();
  if (group.size() == 1) GTEST_SKIP() << "nobody to send to";
  const int to = (group.rank() + 1) % group.size();
  std::vector<Index> counts(group.size());
  counts[to] = 3 * chunk_within_node;
  const Bytes bytes(counts);
  Window window(2);
  Flow<ConstSpan> flow(bytes.spans(), Direction::out, group, window.all());
  std::vector<Posted> posted, ended;
  const auto turn = [&] {
    flow.retire([&](const auto& chunk) { ended.push_back(bytes.posted(chunk)); });
    flow.fill([&](const auto& chunk, MPI_Request& request) {
      posted.push_back(bytes.posted(chunk));
      Window::start(request);
    });
  };
  turn();
  EXPECT_EQ(posted.size(), 2U) << "the window is full";
  window.end(1);
  turn();
  EXPECT_EQ(posted.size(), 2U) << "the oldest is still in flight";
  EXPECT_TRUE(ended.empty());
  window.end(0);
  turn();
  EXPECT_EQ(posted.size(), 3U);
  EXPECT_EQ(ended, std::vector(posted.begin(), posted.begin() + 2));
  EXPECT_EQ(flow.oldest(), to);
  window.end(0);
  turn();
  EXPECT_EQ(ended, posted);
  EXPECT_EQ(flow.oldest(), -1);
}

}  // namespace
}  // namespace kzero::comm
