#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "comm/backends.hpp"
#include "comm/mpi_communicator.hpp"
#include "comm/nccl_communicator.hpp"
#include "comm/placement.hpp"
#include "doubles/cuda_runtime.hpp"
#include "doubles/nccl.hpp"
#include "grid/process_grid.hpp"
#include "runtime/host_name.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "support/training.hpp"

namespace kzero::comm {
namespace {

using doubles::nccl_calls;
using tests::numbers;
using tests::same_bits;

/// Elements that rank `from` sends to rank `to`.
Index count_of(int from, int to) {
  constexpr Index counts[] = {0, 1, 7, 4093, 0, 257, 31};
  return counts[(from * 3 + to * 5) % 7];
}

template <class T>
class Nccl : public testing::Test {
 protected:
  const Execution stream;
  grid::Group group = grid::world_group();
  const int ranks = group.size(), me = group.rank();
  Traffic traffic;
  std::unique_ptr<Communicator> comm = std::make_unique<NcclCommunicator>(group, traffic);
};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Nccl, Elements, );

TYPED_TEST(Nccl, AllToAllBringsEveryElementAndNothingElse) {
  using T = TypeParam;
  std::vector<std::vector<T>> out, in;
  std::vector<ConstSpan> send;
  std::vector<Span> receive;
  const T guard = static_cast<T>(-77.0F);
  for (int r = 0; r < this->ranks; ++r) {
    out.push_back(numbers<T>(count_of(this->me, r), 10 * this->me + r, 3));
    in.emplace_back(static_cast<std::size_t>(count_of(r, this->me) + 1), guard);
  }
  for (int r = 0; r < this->ranks; ++r) {
    send.push_back(ConstSpan::of(out[r].data(), count_of(this->me, r)));
    receive.push_back(Span::of(in[r].data(), count_of(r, this->me)));
  }
  this->comm->all_to_all(this->stream, send, receive, Operation::reduce_scatter,
                         Purpose::gradients);
  for (int r = 0; r < this->ranks; ++r) {
    std::vector<T> expected(in[r].size() - 1, guard);
    if (r != this->me) expected = numbers<T>(count_of(r, this->me), 10 * r + this->me, 3);
    expected.push_back(guard);
    EXPECT_TRUE(same_bits(in[r], expected)) << "from rank " << r;
  }
}

TYPED_TEST(Nccl, AllGatherFillsOneArrayInACallAndOthersInPairs) {
  using T = TypeParam;
  const Index count = 4099;
  for (const Index gap : {0, 5}) {
    for (const bool in_place : {false, true}) {
      const auto before = nccl_calls();
      std::vector<T> all(static_cast<std::size_t>((count + gap) * this->ranks)), expected = all;
      const auto place = [&](int r) { return all.data() + r * (count + gap); };
      for (int r = 0; r < this->ranks; ++r) {
        const auto values = numbers<T>(count, r, 3);
        std::copy(values.begin(), values.end(), expected.begin() + r * (count + gap));
      }
      const auto mine = numbers<T>(count, this->me, 3);
      if (in_place) std::copy(mine.begin(), mine.end(), place(this->me));
      std::vector<Span> receive;
      for (int r = 0; r < this->ranks; ++r) receive.push_back(Span::of(place(r), count));
      const T* from = in_place ? place(this->me) : mine.data();
      this->comm->all_gather(this->stream, ConstSpan::of(from, count), receive,
                             Purpose::parameters);
      EXPECT_TRUE(same_bits(all, expected)) << "gap " << gap << ", in place " << in_place;
      const bool is_alone = this->ranks == 1;
      EXPECT_EQ(nccl_calls().all_gathers - before.all_gathers, gap == 0 && !is_alone ? 1 : 0);
      EXPECT_EQ(nccl_calls().sends - before.sends, gap == 0 ? 0 : this->ranks - 1);
    }
  }
}

TYPED_TEST(Nccl, LibrarySumIsTheLibrarysAndIsCounted) {
  using T = TypeParam;
  const Index count = 1031;
  auto all = numbers<T>(count * this->ranks, this->me, 3);
  std::vector<T> expected(static_cast<std::size_t>(count), T(0.0F));
  for (int r = this->ranks - 1; r >= 0; --r) {
    const auto theirs = numbers<T>(count * this->ranks, r, 3);
    for (Index i = 0; i < count; ++i) {
      const float value = static_cast<float>(theirs[this->me * count + i]);
      T& sum = expected[i];
      sum = static_cast<T>(static_cast<float>(sum) + value);
    }
  }
  T* own = all.data() + this->me * count;
  this->comm->wait(this->stream, this->comm->begin_library_sum(
                                     this->stream, ConstSpan::of(all.data(), count * this->ranks),
                                     Span::of(own, count), Purpose::gradients));
  EXPECT_TRUE(same_bits(std::vector<T>(own, own + count), expected));
  for (const auto& [channel, volume] : this->traffic.outside()) {
    EXPECT_EQ(describe(channel), "reduce_scatter of gradients");
    EXPECT_EQ(volume.elements, count * (this->ranks - 1));
  }
}

// Sums and gathers take turns among themselves, not with one another; each can be waited for.
TYPED_TEST(Nccl, ManyExchangesAreUnderWayAtOnce) {
  using T = TypeParam;
  doubles::set_calls(doubles::Calls::late);
  if (this->ranks == 1) GTEST_SKIP() << "nothing to send";
  const Index count = 100;
  std::vector<std::vector<T>> arrays;
  std::vector<Request> requests;
  for (int e = 0; e < 100; ++e) {
    arrays.push_back(std::vector<T>(static_cast<std::size_t>(count * this->ranks)));
    const auto mine = numbers<T>(count, 1000 * e + this->me, 3);
    std::copy(mine.begin(), mine.end(), arrays.back().begin() + this->me * count);
  }
  for (int e = 0; e < 100; ++e) {
    std::vector<Span> receive;
    for (int r = 0; r < this->ranks; ++r)
      receive.push_back(Span::of(arrays[e].data() + r * count, count));
    const auto mine = ConstSpan::of(arrays[e].data() + this->me * count, count);
    requests.push_back(
        e % 2 == 0 ? this->comm->begin_all_gather(this->stream, mine, receive, Purpose::parameters)
                   : this->comm->begin_all_to_all(
                         this->stream, std::vector<ConstSpan>(receive.size(), mine), receive,
                         Operation::reduce_scatter, Purpose::gradients));
  }
  for (int e = 99; e >= 0; --e) {
    this->comm->wait(this->stream, requests[e]);
    for (int r = 0; r < this->ranks; ++r) {
      EXPECT_TRUE(same_bits(
          std::vector<T>(arrays[e].begin() + r * count, arrays[e].begin() + (r + 1) * count),
          numbers<T>(count, 1000 * e + r, 3)))
          << e;
    }
  }
  doubles::set_calls(doubles::Calls::at_once);
}

TEST(NcclGroups, OfAGridWorkBesideOneAnother) {
  const grid::Group world = grid::world_group();
  if (world.size() % 2 != 0) GTEST_SKIP() << "needs two tensor ranks";
  const grid::ProcessGrid grid(0, 2);
  Traffic traffic;
  const NcclCommunicator data(grid.data(), traffic);
  NcclCommunicator tensor(grid.tensor(), traffic);
  std::vector<float> values(2, -1.0F);
  const auto mine = static_cast<float>(grid.world().rank());
  tensor.all_gather(Execution(), ConstSpan::of(&mine, 1),
                    {Span::of(&values[0], 1), Span::of(&values[1], 1)}, Purpose::activations);
  const int first = grid.world().rank() / 2 * 2;
  EXPECT_EQ(values, (std::vector{static_cast<float>(first), static_cast<float>(first + 1)}));
}

TEST(NcclGroups, EndInOrderOnceAllHasArrived) {
  const grid::Group group = grid::world_group();
  const auto before = nccl_calls();
  Traffic traffic;
  { const NcclCommunicator comm(group, traffic); }
  EXPECT_EQ(nccl_calls().destroyed - before.destroyed, group.size() == 1 ? 0 : 2);
  EXPECT_EQ(nccl_calls().aborted, before.aborted);
}

/// While it lives, all ranks compute on one device. NCCL counts ranks with different host ids as
/// ranks of different hosts.
struct OneDevice {
  explicit OneDevice(const std::string& host_id = "") {
    doubles::set_bus("0000:18:00.0");
    if (!host_id.empty()) setenv("NCCL_HOSTID", host_id.c_str(), 1);
  }
  ~OneDevice() {
    doubles::set_bus("");
    unsetenv("NCCL_HOSTID");
  }
  OneDevice(const OneDevice&) = delete;
  OneDevice& operator=(const OneDevice&) = delete;
};

/// Expects that NCCL is refused to the group, because of a device of this host.
void expect_refusal(const grid::Group& group, const std::string& host) {
  Traffic traffic;
  try {
    const NcclCommunicator comm(group, traffic);
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::usage);
    const std::string named = "ranks 0 and 1 share device 0000:18:00.0 of " + host;
    EXPECT_NE(std::string(error.what()).find(named), std::string::npos) << error.what();
  }
}

TEST(NcclGroups, OnOneGpuAreRefusedWithItsName) {
  const grid::Group group = grid::world_group();
  if (group.size() == 1) GTEST_SKIP() << "nobody to share with";
  {
    const OneDevice device;
    expect_refusal(group, runtime::host_name());
  }
  const OneDevice device("one");
  expect_refusal(group, "one");
}

TEST(NcclGroups, NeedALibraryThatKeepsTheOrder) {
  const grid::Group group = grid::world_group();
  if (group.size() == 1) GTEST_SKIP() << "a group of one has no communicator";
  doubles::set_nccl_version(22505);
  Traffic traffic;
  try {
    const NcclCommunicator comm(group, traffic);
    ADD_FAILURE() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("needs NCCL 2.26 or newer"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("found 2.25.5"), std::string::npos) << error.what();
  }
  doubles::set_nccl_version(0);
}

/// Losses, norms and state of a few steps.
std::pair<std::vector<double>, std::vector<float>> train(
    deck::Config config, deck::CommunicatorKind kind,
    doubles::Calls calls = doubles::Calls::at_once) {
  config.run.communicator = kind;
  doubles::set_calls(calls);
  const auto aborted = nccl_calls().aborted;
  std::pair<std::vector<double>, std::vector<float>> result;
  {
    tests::Training training(config, grid::world_group());
    training.engine->initialise({});
    result = {tests::numbers_of(training.run(0, 3)), training.state()};
  }
  EXPECT_EQ(nccl_calls().aborted, aborted) << "a collective was never waited for";
  doubles::set_calls(doubles::Calls::at_once);
  return result;
}

// The same code above the communicator, with sums enqueued after collectives instead of waited
// for. With late calls, what is read before it was waited for, or overwritten before it was sent,
// shows.
TEST(NcclTraining, GivesTheBitsThatMpiGives) {
  const int ranks = grid::world_group().size();
  for (const Index tensor : {1, 2, 3}) {
    if (ranks % tensor != 0) continue;
    for (Index stage = 0; stage < 4; ++stage) {
      deck::Config config = tests::small_deck(stage % 2 == 0 ? Dtype::bf16 : Dtype::fp32);
      config.model.heads = tensor, config.model.hidden = 18, config.grid.tensor = tensor;
      config.train.global_batch = 12;
      config.zero.stage = stage, config.zero.bucket = 3001;
      const auto expected = train(config, deck::CommunicatorKind::mpi);
      for (const auto overlap : {deck::Overlap::automatic, deck::Overlap::off}) {
        config.zero.overlap = overlap;
        for (const auto calls : {doubles::Calls::at_once, doubles::Calls::late}) {
          const auto found = train(config, deck::CommunicatorKind::nccl, calls);
          EXPECT_EQ(found.first, expected.first) << "stage " << stage << ", tensor " << tensor;
          EXPECT_TRUE(same_bits(found.second, expected.second)) << "stage " << stage;
        }
      }
    }
  }
}

// Communicators, buffers and counts are those of a run over MPI.
TEST(NcclTraining, OfRanksThatShareAGpuGoesOverMpi) {
  const grid::Group world = grid::world_group();
  if (world.size() == 1) GTEST_SKIP() << "nobody to share with";
  for (const Index tensor : {1, 2}) {
    if (world.size() % tensor != 0) continue;
    for (Index stage = 0; stage < 4; ++stage) {
      deck::Config config = tests::small_deck(Dtype::bf16);
      config.model.heads = tensor, config.model.hidden = 18, config.grid.tensor = tensor;
      config.train.global_batch = 12;
      config.zero.stage = stage, config.zero.bucket = 3001;
      const auto expected = train(config, deck::CommunicatorKind::mpi);
      const auto before = nccl_calls();
      const OneDevice device;
      const auto found = train(config, deck::CommunicatorKind::automatic);
      EXPECT_EQ(found.first, expected.first) << "stage " << stage << ", tensor " << tensor;
      EXPECT_TRUE(same_bits(found.second, expected.second)) << "stage " << stage;
      EXPECT_EQ(nccl_calls().destroyed, before.destroyed) << "a communicator of NCCL was made";

      tests::Training training(config, world);
      training.engine->initialise({});
      training.run(0, 2);
      const std::string what = "stage " + std::to_string(stage);
      tests::expect_planned_bytes(training, what);
      tests::expect_planned_traffic(training, what);
      EXPECT_EQ(overlap_of(training.config), Overlap::no) << "as over MPI on one node";
      EXPECT_NE(communicator_note(training.config).find("ranks 0 and 1 share device 0000:18:00.0"),
                std::string::npos);
    }
  }
}

// A request is granted or refused on all ranks alike.
TEST(NcclTraining, OfRanksThatShareAGpuIsRefusedIfNcclWasAskedFor) {
  if (grid::world_group().size() == 1) GTEST_SKIP() << "nobody to share with";
  deck::Config config = tests::small_deck();
  config.train.global_batch = 12;
  const OneDevice device;
  EXPECT_THROW(train(config, deck::CommunicatorKind::nccl), Error);
}

// So several ranks on one GPU can test NCCL.
TEST(NcclTraining, OfRanksThatShareAGpuGoesOverNcclIfEachHasAHostId) {
  const grid::Group world = grid::world_group();
  if (world.size() == 1) GTEST_SKIP() << "nobody to share with";
  deck::Config config = tests::small_deck();
  config.train.global_batch = 12;
  const auto expected = train(config, deck::CommunicatorKind::mpi);
  const OneDevice device("host " + std::to_string(world.rank()));
  for (const auto kind : {deck::CommunicatorKind::automatic, deck::CommunicatorKind::nccl}) {
    const auto before = nccl_calls();
    const auto found = train(config, kind);
    EXPECT_EQ(found.first, expected.first);
    EXPECT_TRUE(same_bits(found.second, expected.second));
    EXPECT_GT(nccl_calls().destroyed, before.destroyed) << "no communicator of NCCL was made";
  }
}

TEST(NcclTraining, OfRanksWithTheirOwnGpusGoesOverNccl) {
  const grid::Group world = grid::world_group();
  if (world.size() == 1) GTEST_SKIP() << "no messages";
  deck::Config config = tests::small_deck();
  config.train.global_batch = 12;
  const auto before = nccl_calls();
  train(config, deck::CommunicatorKind::automatic);
  EXPECT_GT(nccl_calls().destroyed, before.destroyed);
}

TEST(NcclTraining, WithTheLibrarysSumsStaysCloseAndCountsTheSame) {
  deck::Config config = tests::small_deck();
  // In a last round of 10, two of four ranks have a micro-batch, which share a node.
  for (const auto& [node, batch] : {std::pair{0, 12}, {2, 10}}) {
    config.grid.node = node, config.train.global_batch = batch;
    for (Index stage = 0; stage < 4; ++stage) {
      config.zero.stage = stage;
      config.zero.reduction = deck::ReductionOrder::ranks;
      const auto ordered = train(config, deck::CommunicatorKind::nccl);
      config.zero.reduction = deck::ReductionOrder::library;
      const auto before = nccl_calls().reduce_scatters;
      const auto sums = train(config, deck::CommunicatorKind::nccl);
      EXPECT_EQ(nccl_calls().reduce_scatters > before, grid::world_group().size() > 1);
      ASSERT_EQ(sums.first.size(), ordered.first.size());
      for (std::size_t i = 0; i < sums.first.size(); ++i)
        EXPECT_NEAR(sums.first[i], ordered.first[i], 1e-4 * std::abs(ordered.first[i])) << i;
    }
  }
}

TEST(NcclTraining, LibrarySumsOverMpiAreRefused) {
  if (grid::world_group().size() == 1) GTEST_SKIP() << "no sums";
  deck::Config config = tests::small_deck();
  config.train.global_batch = 12;
  config.zero.reduction = deck::ReductionOrder::library;
  EXPECT_THROW(train(config, deck::CommunicatorKind::mpi), Error);
}

// Last: a failure stays noted for the process's life.
TEST(NcclWatch, ReportsAnErrorThatNoCallReturned) {
  const grid::Group group = grid::world_group();
  if (group.size() == 1) GTEST_SKIP() << "a group of one has no communicator";
  const auto before = nccl_calls();
  {
    Traffic traffic;
    const NcclCommunicator comm(group, traffic);
    EXPECT_FALSE(failed_wait());
    doubles::fail_all_communicators();
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!failed_wait() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(failed_wait());
    EXPECT_EQ(failed_wait()->group, "world");
    EXPECT_EQ(failed_wait()->problem, "NCCL: remote process exited or there was a network error");
  }
  EXPECT_EQ(nccl_calls().aborted - before.aborted, 2);
}

}  // namespace
}  // namespace kzero::comm
