#include <gtest/gtest.h>

#include <deque>
#include <numeric>
#include <vector>

#include "base/error.hpp"
#include "base/waited.hpp"
#include "comm/backends.hpp"
#include "comm/mpi_communicator.hpp"
#include "grid/process_grid.hpp"
#include "support/guarded.hpp"

namespace kzero::comm {
namespace {

using tests::Guarded;

/// The elements that rank `from` sends to rank `to`: none, one, primes, and more than one chunk of
/// a message.
Index count_of(int from, int to) {
  constexpr Index counts[] = {0, 1, 7, 4093, 0, 300007, 31};
  return counts[(from * 3 + to * 5) % 7];
}

float value_of(int from, int to, Index i) {
  return static_cast<float>((from * 11 + to) * 4096 + i % 4093);
}

enum class Staged { as_the_build, always };

enum class Nodes { one, several };

/// How messages move: with or without overlap, and without it, how their arrival is awaited. On
/// several nodes, each rank is on a node of its own.
struct Movement {
  Overlap overlap;
  Waits waits;
  Nodes nodes = Nodes::one;
};

grid::Group group_on(Nodes nodes) {
  grid::Group group = grid::world_group();
  std::vector<int> node_of(group.size());
  std::iota(node_of.begin(), node_of.end(), 0);
  if (nodes == Nodes::several) group.set_nodes(node_of, {group.size(), 1});
  return group;
}

/// Always staged: every chunk uses the path for device memory that MPI cannot access.
class Collective : public testing::TestWithParam<std::tuple<Movement, Staged>> {
 protected:
  Collective()
      : group(group_on(std::get<Movement>(GetParam()).nodes)),
        comm(std::make_unique<MpiCommunicator>(
            std::get<Movement>(GetParam()).overlap, group, traffic,
            std::get<Staged>(GetParam()) == Staged::always ? Reach::host : mpi_reach(),
            std::get<Movement>(GetParam()).waits)) {}

  const Execution stream;
  grid::Group group;
  Traffic traffic;
  std::unique_ptr<Communicator> comm;
};

TEST_P(Collective, AllToAllBringsEveryElementAndNothingElse) {
  const int ranks = comm->size(), me = comm->rank();
  std::deque<Guarded<float>> out, in;
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  Index sent = 0;
  for (int r = 0; r < ranks; ++r) {
    std::vector<float> values;
    for (Index i = 0; i < count_of(me, r); ++i) values.push_back(value_of(me, r, i));
    send.push_back(ConstSpan::of(out.emplace_back(values).data(), count_of(me, r)));
    receive.push_back(Span::of(in.emplace_back(count_of(r, me)).data(), count_of(r, me)));
    if (r != me) sent += count_of(me, r);
  }
  const std::vector<float> untouched = in[me].host();
  comm->all_to_all(stream, send, receive, Operation::reduce_scatter, Purpose::gradients);
  for (int r = 0; r < ranks; ++r) {
    const std::vector<float> arrived = in[r].host();
    for (Index i = 0; i < count_of(r, me) && r != me; ++i)
      ASSERT_EQ(arrived[i], value_of(r, me, i)) << r << ' ' << i;
  }
  EXPECT_TRUE(tests::same_bits(in[me].host(), untouched)) << "the own entry is ignored";
  if (ranks == 1) {
    EXPECT_TRUE(traffic.outside().empty());
    return;
  }
  ASSERT_EQ(traffic.outside().size(), 1U);
  const auto& [channel, volume] = *traffic.outside().begin();
  EXPECT_EQ(channel.group, "world");
  EXPECT_EQ(channel.operation, Operation::reduce_scatter);
  EXPECT_EQ(channel.purpose, Purpose::gradients);
  EXPECT_EQ(volume.elements, sent);
  EXPECT_EQ(volume.bytes, 4 * sent);
}

TEST_P(Collective, AllGatherGivesEveryRankEveryChunk) {
  const int ranks = comm->size(), me = comm->rank();
  for (const Index count : {0, 1, 13, 524287, 524288, 524289}) {  // around a chunk, also of bf16
    traffic.reset();
    const Guarded<bf16> mine(std::vector(count, static_cast<bf16>(static_cast<float>(me + 1))));
    std::deque<Guarded<bf16>> all;
    std::vector<Span> receive;
    for (int r = 0; r < ranks; ++r)
      receive.push_back(Span::of(all.emplace_back(Index{count}).data(), count));
    comm->all_gather(stream, ConstSpan::of(mine.data(), count), receive, Purpose::parameters);
    for (int r = 0; r < ranks; ++r) {
      const auto expected = static_cast<float>(r + 1);
      for (const bf16 value : all[r].host()) ASSERT_EQ(static_cast<float>(value), expected);
    }
    for (const auto& [channel, volume] : traffic.outside()) {
      EXPECT_EQ(channel.operation, Operation::all_gather);
      EXPECT_EQ(channel.purpose, Purpose::parameters);
      EXPECT_EQ(volume.elements, count * (ranks - 1));
      EXPECT_EQ(volume.bytes, 2 * count * (ranks - 1));
    }
    EXPECT_EQ(traffic.outside().size(), ranks == 1 ? 0U : 1U);
  }
}

/// Gathers `count` elements from each of `ranks` peers. Every rank sends its own number, so element
/// i of the result has the number peer_at(i).
template <class Gather, class PeerAt>
void expect_gathered(Index ranks, Index count, int me, const Gather& gather,
                     const PeerAt& peer_at) {
  const Guarded<float> mine(std::vector(static_cast<std::size_t>(count), static_cast<float>(me)));
  std::deque<Guarded<float>> all;
  std::vector<Span> receive;
  for (Index i = 0; i < ranks; ++i)
    receive.push_back(Span::of(all.emplace_back(count).data(), count));
  gather(ConstSpan::of(mine.data(), count), receive);
  for (Index i = 0; i < ranks; ++i) {
    for (const float value : all[i].host()) ASSERT_EQ(value, static_cast<float>(peer_at(i)));
  }
}

TEST_P(Collective, GathersInAndAcrossNodesKeepToTheirRanks) {
  const Index ranks = comm->size(), me = comm->rank(), count = 300007;
  for (Index nodes = 1; nodes <= ranks; ++nodes) {
    if (ranks % nodes != 0) continue;
    const NodeShape shape{nodes, ranks / nodes};
    std::vector<int> node_of;
    for (Index r = 0; r < ranks; ++r) node_of.push_back(static_cast<int>(shape.node_of(r)));
    group.set_nodes(node_of, shape);
    const Index node = shape.node_of(me), place = shape.place_of(me);
    const auto in_node = [&](Index p) { return shape.rank_at(p, node); };
    const auto across_nodes = [&](Index n) { return shape.rank_at(place, n); };
    traffic.reset();
    expect_gathered(
        shape.node_ranks, count, comm->rank(),
        [&](const ConstSpan& mine, const std::vector<Span>& receive) {
          comm->wait(stream,
                     comm->begin_gather_in_node(stream, mine, receive, Purpose::parameters));
        },
        in_node);
    expect_gathered(
        nodes, count, comm->rank(),
        [&](const ConstSpan& mine, const std::vector<Span>& receive) {
          comm->wait(stream,
                     comm->begin_gather_across_nodes(stream, mine, receive, Purpose::parameters));
        },
        across_nodes);
    if (ranks == 1) continue;
    const Volume sent = traffic.outside().begin()->second;
    EXPECT_EQ(sent.elements, count * (shape.node_ranks - 1 + nodes - 1));
    EXPECT_EQ(sent.bytes_between_nodes, 4 * count * (nodes - 1));
  }
}

// Messages that end at the same time have a span each.
TEST_P(Collective, SpansOfMessagesHaveTheBytesOfTheTraffic) {
  const int ranks = comm->size(), me = comm->rank();
  const Index count = 5;
  const Guarded<float> mine(std::vector(count, 1.0F));
  std::deque<Guarded<float>> all;
  std::vector<Span> receive;
  for (int r = 0; r < ranks; ++r)
    receive.push_back(Span::of(all.emplace_back(Index{count}).data(), count));
  std::vector<SpanRecord> memory(1000);
  start_timeline(memory);
  comm->all_gather(stream, ConstSpan::of(mine.data(), count), receive, Purpose::parameters);
  const Timeline recorded = stop_timeline();
  std::vector<std::int32_t> reached;
  for (const SpanRecord& span : recorded.spans) {
    if (span.kind != SpanKind::message) continue;
    EXPECT_EQ(span.work.bytes, 4 * count);
    EXPECT_GT(span.end, 0) << "it is closed";
    reached.push_back(span.work.rank);
  }
  std::vector<std::int32_t> expected;
  for (int step = 1; step < ranks; ++step) expected.push_back((me + step) % ranks);
  EXPECT_EQ(reached, expected);
}

// If a worker exchanges, the caller waits only in wait(). Otherwise the exchange is the wait.
TEST_P(Collective, TheCallersWaitsAreCounted) {
  if (comm->size() == 1) GTEST_SKIP() << "nobody to wait for";
  const bool has_worker = std::get<Movement>(GetParam()).overlap == Overlap::yes;
  const Index count = 300007;
  const std::vector<float> mine(count, 1.0F);
  double in_begin = 0, in_wait = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    std::deque<Guarded<float>> all;
    std::vector<Span> receive;
    for (int r = 0; r < comm->size(); ++r)
      receive.push_back(Span::of(all.emplace_back(Index{count}).data(), count));
    const Guarded<float> sent(mine);
    const double before = seconds_waited().all;
    const Request request = comm->begin_all_gather(stream, ConstSpan::of(sent.data(), count),
                                                   receive, Purpose::parameters);
    const double between = seconds_waited().all;
    comm->wait(stream, request);
    in_begin += between - before;
    in_wait += seconds_waited().all - between;
  }
  EXPECT_EQ(in_begin > 0, !has_worker);
  EXPECT_EQ(in_wait > 0, has_worker);
}

// Several collectives are in flight while the caller is busy between them.
TEST_P(Collective, EndsInTheOrderInWhichItBegan) {
  const int ranks = comm->size(), me = comm->rank();
  constexpr int exchanges = 5;
  const Index count = 300007;
  std::deque<Guarded<float>> mine, all;
  std::vector<Request> requests;
  for (int e = 0; e < exchanges; ++e) {
    mine.emplace_back(std::vector(count, static_cast<float>(100 * e + me)));
    all.emplace_back(count * ranks);
  }
  for (int e = 0; e < exchanges; ++e) {
    std::vector<Span> receive;
    for (int r = 0; r < ranks; ++r) receive.push_back(Span::of(all[e].data() + r * count, count));
    requests.push_back(comm->begin_all_gather(
        stream, ConstSpan::of(static_cast<const float*>(mine[e].data()), count), receive,
        Purpose::parameters));
  }
  comm->wait(stream, requests[2]);
  const auto expect_arrived = [&](int e) {
    const std::vector<float> arrived = all[e].host();
    for (int r = 0; r < ranks; ++r) {
      const auto expected = static_cast<float>(100 * e + r);
      EXPECT_EQ(arrived[r * count], expected) << e;
      EXPECT_EQ(arrived[(r + 1) * count - 1], expected) << e;
    }
  };
  for (int e = 0; e <= 2; ++e) expect_arrived(e);
  comm->wait(stream, requests.back());
  for (int e = 3; e < exchanges; ++e) expect_arrived(e);
}

std::string name_of_way(const testing::TestParamInfo<std::tuple<Movement, Staged>>& test) {
  const auto [overlap, waits, nodes] = std::get<Movement>(test.param);
  return std::string(overlap == Overlap::yes ? "overlapped" : "inside") +
         (waits == Waits::yield ? "_yielding" : "") +
         (nodes == Nodes::several ? "_between_nodes" : "") +
         (std::get<Staged>(test.param) == Staged::always ? "_staged" : "");
}

INSTANTIATE_TEST_SUITE_P(
    Ways, Collective,
    testing::Combine(testing::Values(Movement{Overlap::no, Waits::spin},
                                     Movement{Overlap::no, Waits::yield},
                                     Movement{Overlap::yes, Waits::spin},
                                     Movement{Overlap::no, Waits::spin, Nodes::several},
                                     Movement{Overlap::yes, Waits::spin, Nodes::several}),
                     testing::Values(Staged::as_the_build, Staged::always)),
    name_of_way);

TEST(Traffic, OfStepsIsKeptApartAndKnowsHowManyStepsUsedIt) {
  const Channel a{"data", Operation::all_gather, Purpose::gradients};
  const Channel b{"data", Operation::all_gather, Purpose::parameters};
  Traffic counted;
  counted.add(a, 100, 400, false);
  for (Index step = 0; step < 3; ++step) {
    counted.begin_step();
    counted.add(a, 2, 8, false);
    counted.add(a, 3, 12, false);
    if (step == 1) counted.add(b, 7, 14, true);
    counted.end_step();
    counted.add(a, 100, 400, false);
  }
  EXPECT_EQ(counted.outside().at(a).elements, 400);
  EXPECT_EQ(counted.in_steps().at(a).elements, 15);
  EXPECT_EQ(counted.in_steps().at(a).bytes, 60);
  EXPECT_EQ(counted.in_steps().at(a).steps, 3);
  EXPECT_EQ(counted.in_steps().at(b).elements, 7);
  EXPECT_EQ(counted.in_steps().at(b).bytes_between_nodes, 14);
  EXPECT_EQ(counted.in_steps().at(a).bytes_between_nodes, 0);
  EXPECT_EQ(counted.in_steps().at(b).steps, 1);
}

TEST(Traffic, AddsUpByChannel) {
  const Channel a{"data", Operation::all_gather, Purpose::gradients};
  const Channel b{"data", Operation::all_gather, Purpose::parameters};
  Traffic counted;
  counted.add(a, 3, 12, false);
  counted.add(b, 5, 10, false);
  counted.add(a, 4, 16, false);
  ASSERT_EQ(counted.outside().size(), 2U);
  EXPECT_EQ(counted.outside().at(a).elements, 7);
  EXPECT_EQ(counted.outside().at(a).bytes, 28);
  EXPECT_EQ(counted.outside().at(b).elements, 5);
  counted.reset();
  EXPECT_TRUE(counted.outside().empty());
}

TEST(Backend, OneThatTheBuildLacksIsRefused) {
  if (moves_by_itself(CommunicatorKind::nccl)) GTEST_SKIP() << "this build has them all";
  const grid::Group group = grid::world_group();
  Traffic traffic;
  try {
    make_communicator(CommunicatorKind::nccl, Overlap::no, group, traffic);
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("run.communicator = \"nccl\""), std::string::npos);
  }
}

TEST(Backend, WithoutSumsOfItsOwnIsRefusedWhereTheyAreWanted) {
  EXPECT_NO_THROW(require_communicator(CommunicatorKind::mpi, false));
  try {
    require_communicator(CommunicatorKind::mpi, true);
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    EXPECT_NE(std::string(error.what()).find("zero.reduction = \"library\""), std::string::npos);
  }
}

}  // namespace
}  // namespace kzero::comm
