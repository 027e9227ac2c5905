// comm/nccl_communicator.cpp on a device that runs everything as late as its events allow, where
// instances of Kokkos own their streams.
#include <gtest/gtest.h>

#include <chrono>
#include <numeric>
#include <set>
#include <stdexcept>
#include <thread>

#include "base/error.hpp"
#include "base/wait.hpp"
#include "comm/nccl_communicator.hpp"
#include "comm/worker.hpp"
#include "doubles/nccl.hpp"
#include "grid/process_grid.hpp"
#include "runtime/cuda_stream.hpp"
#include "runtime/profile.hpp"

namespace kzero::runtime {

bool tool_takes_regions() { return false; }
void push_region(const std::string& /*name*/) {}
void pop_region() {}

}  // namespace kzero::runtime

namespace kzero::comm {
namespace {

using doubles::Calls;
using doubles::nccl_calls;
using Numbers = std::vector<float>;

constexpr Index count = 37;  // elements of each rank

/// The message of rank `from` to rank `to` in the collective number `round`.
Numbers message(int from, int to, int round) {
  Numbers numbers(count);
  std::iota(numbers.begin(), numbers.end(),
            static_cast<float>(1000 * round + 100 * from + 10 * to));
  return numbers;
}

/// Overwrites an array in place.
void write(Numbers& array, const Numbers& values) {
  std::copy(values.begin(), values.end(), array.begin());
}

class NcclStreams : public testing::Test {
 protected:
  NcclStreams() {
    doubles::set_calls(Calls::queued);
    doubles::set_patience(60);
  }
  ~NcclStreams() override { doubles::set_calls(Calls::at_once); }

  void enqueue(const Execution& on, std::function<void()> call) {
    doubles::enqueue(runtime::stream_of(on), std::move(call));
  }

  std::vector<Span> spans(std::vector<Numbers>& arrays) const {
    std::vector<Span> all;
    for (Numbers& array : arrays) all.push_back(Span::of(array.data(), count));
    return all;
  }

  grid::Group group = grid::world_group();
  const int ranks = group.size(), me = group.rank();
  Traffic traffic;
  const Execution stream = runtime::make_stream(), other = runtime::make_stream();
  const Numbers guards = Numbers(count, -1.0F);
};

TEST_F(NcclStreams, AllToAllComesAfterWhatComputesItAndBeforeWhatFollows) {
  if (ranks == 1) GTEST_SKIP() << "nothing to send";
  NcclCommunicator comm(group, traffic);
  std::vector<Numbers> send(ranks, guards), receive(ranks, guards), before, after;
  enqueue(stream, [&] {
    before = receive;
    for (int r = 0; r < ranks; ++r) write(send[r], message(me, r, 1));
  });
  std::vector<ConstSpan> out;
  for (const Numbers& array : send) out.push_back(ConstSpan::of(array.data(), count));
  const Request request = comm.begin_all_to_all(stream, out, spans(receive),
                                                Operation::reduce_scatter, Purpose::gradients);
  comm.wait(other, request);
  enqueue(other, [&] {
    after = receive;
    for (Numbers& array : send) write(array, guards);
  });
  other.fence("");
  EXPECT_EQ(before, std::vector<Numbers>(ranks, guards));
  ASSERT_EQ(static_cast<int>(after.size()), ranks);
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(after[r], r == me ? guards : message(r, me, 1)) << r;
}

// One array, and one with gaps, whose own part is a copy. After each array there is room for what
// a wrong count or place would write.
TEST_F(NcclStreams, AllGatherComesAfterWhatComputesItAndBeforeWhatFollows) {
  if (ranks == 1) GTEST_SKIP() << "nothing to send";
  NcclCommunicator comm(group, traffic);
  for (const Index gap : {0, 3}) {
    constexpr Index room = 4;
    const Index elements = ranks * (count + gap);
    Numbers mine(room * count, -1.0F), all(room * elements, -1.0F), before, after;
    enqueue(stream, [&] {
      before = all;
      write(mine, message(me, 0, 2));
    });
    std::vector<Span> receive;
    for (int r = 0; r < ranks; ++r)
      receive.push_back(Span::of(all.data() + r * (count + gap), count));
    const Request request = comm.begin_all_gather(stream, ConstSpan::of(mine.data(), count),
                                                  receive, Purpose::parameters);
    comm.wait(other, request);
    enqueue(other, [&] {
      after = all;
      write(mine, guards);
    });
    other.fence("");
    EXPECT_EQ(before, Numbers(before.size(), -1.0F));
    ASSERT_EQ(after.size(), all.size());
    EXPECT_EQ(Numbers(after.begin() + elements, after.end()),
              Numbers((room - 1) * elements, -1.0F));
    for (int r = 0; r < ranks; ++r) {
      const auto place = after.begin() + r * (count + gap);
      EXPECT_EQ(Numbers(place, place + count), message(r, 0, 2)) << "gap " << gap;
      EXPECT_EQ(Numbers(place + count, place + count + gap), Numbers(gap, -1.0F));
    }
  }
}

TEST_F(NcclStreams, LibrarySumComesAfterWhatComputesItAndBeforeWhatFollows) {
  if (ranks == 1) GTEST_SKIP() << "nothing to send";
  NcclCommunicator comm(group, traffic);
  Numbers all(ranks * count, -1.0F), after;
  enqueue(stream, [&] {
    for (int r = 0; r < ranks; ++r) {
      const Numbers part = message(me, r, 3);
      std::copy(part.begin(), part.end(), all.begin() + r * count);
    }
  });
  float* own = all.data() + me * count;
  const Request request = comm.begin_library_sum(stream, ConstSpan::of(all.data(), ranks * count),
                                                 Span::of(own, count), Purpose::gradients);
  comm.wait(other, request);
  enqueue(other, [&] { after.assign(own, own + count); });
  other.fence("");
  Numbers expected(count, 0.0F);
  for (int r = 0; r < ranks; ++r) {
    const Numbers part = message(r, me, 3);
    for (Index i = 0; i < count; ++i) expected[i] += part[i];
  }
  EXPECT_EQ(after, expected);
}

// Gathers and sums have a lane each, and streams that nothing else orders.
TEST_F(NcclStreams, OperationsOfSeveralCommunicatorsHaveOneOrder) {
  if (ranks == 1) GTEST_SKIP() << "nothing to send";
  NcclCommunicator first(group, traffic), second(group, traffic);
  std::vector<Numbers> gathered(ranks, guards), received(ranks, guards), again(ranks, guards);
  std::vector<ConstSpan> out;
  const Numbers mine = message(me, 0, 4);
  for (int r = 0; r < ranks; ++r) out.push_back(ConstSpan::of(mine.data(), count));
  const Request sum = first.begin_all_to_all(stream, out, spans(received),
                                             Operation::reduce_scatter, Purpose::gradients);
  const Request gather =
      first.begin_all_gather(other, out[0], spans(gathered), Purpose::parameters);
  const Request last = second.begin_all_to_all(runtime::make_stream(), out, spans(again),
                                               Operation::reduce_scatter, Purpose::gradients);
  const Execution end = runtime::make_stream();
  // Not every rank waits in the same order.
  if (me % 2 == 0) first.wait(end, sum);
  second.wait(end, last);
  first.wait(end, gather);
  first.wait(end, sum);
  end.fence("");
  for (int r = 0; r < ranks; ++r) {
    EXPECT_EQ(gathered[r], message(r, 0, 4));
    if (r == me) continue;
    EXPECT_EQ(received[r], message(r, 0, 4));
    EXPECT_EQ(again[r], message(r, 0, 4));
  }
}

// Measures how long the stream that computes waits. The transfers themselves take no time here.
TEST_F(NcclStreams, MeasuresWhatHoldsUpTheDefaultStreamInSteps) {
  if (ranks == 1) GTEST_SKIP() << "nothing to wait for";
  NcclCommunicator comm(group, traffic);
  const Execution compute;
  std::vector<Numbers> all(ranks, guards);
  const Numbers mine = message(me, 0, 8);
  const auto gather_late = [&](double milliseconds) {  // what is sent takes so long to compute
    enqueue(stream, [milliseconds] { doubles::pass_time(milliseconds); });
    return comm.begin_all_gather(stream, ConstSpan::of(mine.data(), count), spans(all),
                                 Purpose::parameters);
  };
  const auto expect_seconds = [&](double expected) {
    compute.fence("");
    other.fence("");
    EXPECT_FLOAT_EQ(static_cast<float>(comm.take_device_wait()), static_cast<float>(expected));
  };
  comm.wait(compute, gather_late(16));
  expect_seconds(0);  // not in a step: an evaluation
  traffic.begin_step();
  comm.wait(other, gather_late(32));
  expect_seconds(0);  // another stream, during the computation
  comm.wait(compute, gather_late(64));
  expect_seconds(0.064);
  runtime::Event summed;
  comm.wait(other, gather_late(128));
  summed.record(other);
  comm.wait_for(compute, summed);
  expect_seconds(0.128);
  traffic.end_step();
  comm.wait_for(compute, summed);
  expect_seconds(0);
}

// A thread that has not chosen the device would take memory on the node's first one.
TEST_F(NcclStreams, TheWatchingThreadAsksTheDeviceOfTheProcess) {
  NcclCommunicator comm(group, traffic);
  std::vector<Numbers> all(ranks, guards);
  const Numbers mine = message(me, 0, 5);
  const Request request = comm.begin_all_gather(stream, ConstSpan::of(mine.data(), count),
                                                spans(all), Purpose::parameters);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));  // a few looks
  comm.wait(stream, request);
  stream.fence("");
  for (int r = 0; r < ranks && ranks > 1; ++r) EXPECT_EQ(all[r], message(r, 0, 5));
  EXPECT_EQ(doubles::take_violations(), std::vector<std::string>{});
}

TEST_F(NcclStreams, AWorkersThreadUsesTheDeviceOfTheProcess) {
  Worker worker;
  worker.wait(worker.submit([&] {
    runtime::Event event;
    event.order(stream, other);
  }));
  EXPECT_EQ(doubles::take_violations(), std::vector<std::string>{});
}

TEST_F(NcclStreams, AnEndInOrderWaitsForTheOthers) {
  const auto before = nccl_calls();
  { const NcclCommunicator comm(group, traffic); }
  EXPECT_EQ(nccl_calls().destroyed - before.destroyed, ranks == 1 ? 0 : 2);
  EXPECT_EQ(nccl_calls().aborted, before.aborted);
}

// A rank that never comes would let the others wait for ever: the watchdog has to see that they do.
TEST_F(NcclStreams, AWaitForTheOthersAtEitherEndIsNoted) {
  if (ranks == 1) GTEST_SKIP() << "nobody to wait for";
  std::set<std::string> waits;
  doubles::set_delay(me == 0 ? 0 : 0.2);
  {
    const std::jthread looks([&](const std::stop_token& stop) {
      for (; !stop.stop_requested(); std::this_thread::sleep_for(std::chrono::milliseconds(2))) {
        if (const auto wait = longest_wait()) waits.insert(wait->what + " over " + wait->group);
      }
    });
    const NcclCommunicator comm(group, traffic);
  }
  doubles::set_delay(0);
  EXPECT_TRUE(me != 0 || waits.contains("start of NCCL over world"));
  EXPECT_TRUE(me != 0 || waits.contains("end of NCCL over world"));
}

TEST_F(NcclStreams, AStartThatFailsLeavesNoCommunicator) {
  if (ranks == 1) GTEST_SKIP() << "a group of one has no communicator";
  const auto before = nccl_calls();
  doubles::fail_start(1);
  EXPECT_THROW(NcclCommunicator(group, traffic), Error);
  EXPECT_EQ(nccl_calls().aborted - before.aborted, 1);
}

TEST_F(NcclStreams, ACallThatFailsLeavesNoGroupOpen) {
  if (ranks == 1) GTEST_SKIP() << "nothing to send";
  const auto before = nccl_calls();
  {
    NcclCommunicator comm(group, traffic);
    const std::vector<ConstSpan> nowhere(ranks, ConstSpan::of<float>(nullptr, count));
    std::vector<Numbers> all(ranks, guards);
    EXPECT_THROW(
        comm.all_to_all(stream, nowhere, spans(all), Operation::reduce_scatter, Purpose::gradients),
        Error);
    const Numbers mine = message(me, 0, 7);
    comm.all_to_all(stream, std::vector(ranks, ConstSpan::of(mine.data(), count)), spans(all),
                    Operation::reduce_scatter, Purpose::gradients);
    stream.fence("");
    for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[r], r == me ? guards : message(r, 0, 7)) << r;
  }
  EXPECT_EQ(nccl_calls().aborted, before.aborted);
}

// A failure stays noted for the process's life: of the tests that leave one, the first.
TEST_F(NcclStreams, ARankThatThrowsAloneWaitsForNobody) {
  if (ranks == 1) GTEST_SKIP() << "nobody to wait for";
  ASSERT_FALSE(failed_wait());
  const auto before = nccl_calls();
  const auto live = [&] {
    const NcclCommunicator comm(group, traffic);
    if (me == 0) throw std::runtime_error("alone");
    const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(40);
    while (!failed_wait() && std::chrono::steady_clock::now() < limit)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ASSERT_TRUE(failed_wait()) << "the others do not learn of it";
  };
  if (me == 0) {
    EXPECT_THROW(live(), std::runtime_error);
  } else {
    live();
  }
  EXPECT_EQ(nccl_calls().aborted - before.aborted, 2);
  EXPECT_EQ(nccl_calls().destroyed, before.destroyed);
}

// A collective in flight may wait for a rank that is gone.
TEST_F(NcclStreams, AnEndWithACollectiveInFlightAborts) {
  if (ranks == 1) GTEST_SKIP() << "a group of one has no communicator";
  const auto before = nccl_calls();
  std::vector<Numbers> all(ranks, guards);
  const Numbers mine = message(me, 0, 6);
  {
    NcclCommunicator comm(group, traffic);
    comm.begin_all_gather(stream, ConstSpan::of(mine.data(), count), spans(all),
                          Purpose::parameters);
    group.barrier();  // all have begun; a watching thread may yet note another's end as a failure
  }
  EXPECT_EQ(nccl_calls().aborted - before.aborted, 2);
  EXPECT_EQ(all, std::vector<Numbers>(ranks, guards)) << "arrived after the abort";
  group.barrier();
}

}  // namespace
}  // namespace kzero::comm
