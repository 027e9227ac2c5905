// The stand-in for NCCL itself: what the library documents as wrong is refused or reported, and
// nothing waits without an end.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "doubles/nccl.hpp"
#include "doubles/nccl_state.hpp"
#include "grid/process_grid.hpp"

namespace kzero::doubles {
namespace {

using Numbers = std::vector<float>;

class NcclRules : public testing::Test {
 protected:
  void SetUp() override {
    if (ranks == 1) GTEST_SKIP() << "needs other ranks";
    set_calls(Calls::queued);
    set_patience(60);
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 1);
    forget_nccl_environment();
    cudaStreamCreate(&stream);
    cudaStreamCreate(&other);
    ASSERT_EQ(init(first), ncclSuccess);
    ASSERT_EQ(init(second), ncclSuccess);
  }

  // Aborts, as most tests end with an error, once no rank has one to find.
  void TearDown() override {
    if (ranks == 1) return;
    group.barrier();
    if (first) ncclCommAbort(first);
    if (second) ncclCommAbort(second);
    cudaStreamDestroy(stream);
    cudaStreamDestroy(other);
    set_calls(Calls::at_once);
    // Later tests need what kzero sets itself.
    unsetenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    forget_nccl_environment();
  }

  ncclResult_t init(ncclComm_t& comm) {
    ncclUniqueId id{};
    std::string bytes(sizeof id.internal, '\0');
    if (group.is_root()) {
      ncclGetUniqueId(&id);
      bytes.assign(id.internal, sizeof id.internal);
    }
    bytes = group.broadcast(bytes);
    std::memcpy(id.internal, bytes.data(), bytes.size());
    return ncclCommInitRank(&comm, ranks, id, me);
  }

  ncclResult_t gather(ncclComm_t comm, cudaStream_t on, std::size_t count = 2,
                      ncclDataType_t type = ncclFloat32) {
    return ncclAllGather(mine.data(), all.data(), count, type, comm, on);
  }

  /// A message from rank 0 to rank 1.
  ncclResult_t message(ncclComm_t comm, std::size_t count, ncclDataType_t type = ncclFloat32) {
    ncclGroupStart();
    if (me == 0) ncclSend(mine.data(), count, type, 1, comm, stream);
    if (me == 1) ncclRecv(all.data(), count, type, 0, comm, stream);
    return ncclGroupEnd();
  }

  ncclResult_t error_of(ncclComm_t comm) {
    ncclResult_t error = ncclSuccess;
    ncclCommGetAsyncError(comm, &error);
    return error;
  }

  /// Expects that this rank broke a rule, and says in which words.
  static void expect_violation(const std::string& part) {
    const auto found = take_violations();
    ASSERT_FALSE(found.empty()) << "nothing about: " << part;
    EXPECT_NE(found[0].find(part), std::string::npos) << found[0];
  }

  grid::Group group = grid::world_group();
  const int ranks = group.size(), me = group.rank();
  cudaStream_t stream = nullptr, other = nullptr;
  ncclComm_t first = nullptr, second = nullptr;
  Numbers mine = Numbers(8, 1.0F), all = Numbers(64, 0.0F);
};

TEST_F(NcclRules, CountsOfACollectiveAgree) {
  EXPECT_EQ(gather(first, stream, me == 0 ? 2 : 3), ncclSuccess);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(error_of(first), ncclInternalError);
  EXPECT_EQ(all, Numbers(64, 0.0F));
  expect_violation("counts differ");
}

TEST_F(NcclRules, TypesOfACollectiveAgree) {
  EXPECT_EQ(gather(first, stream, 2, me == 0 ? ncclFloat16 : ncclBfloat16), ncclSuccess);
  cudaStreamSynchronize(stream);
  EXPECT_EQ(error_of(first), ncclInternalError);
  expect_violation("types differ");
}

TEST_F(NcclRules, CollectivesAgree) {
  if (me == 0) {
    EXPECT_EQ(gather(first, stream), ncclSuccess);
  } else {
    EXPECT_EQ(ncclReduceScatter(all.data(), mine.data(), 2, ncclFloat32, ncclSum, first, stream),
              ncclSuccess);
  }
  cudaStreamSynchronize(stream);
  expect_violation("operations differ");
}

TEST_F(NcclRules, CountsAndTypesOfAMessageAgree) {
  EXPECT_EQ(message(first, me == 0 ? 2 : 3), ncclSuccess);
  EXPECT_EQ(message(second, 2, me == 0 ? ncclFloat16 : ncclBfloat16), ncclSuccess);
  cudaStreamSynchronize(stream);
  if (me != 1) return;
  EXPECT_EQ(error_of(first), ncclInternalError);
  EXPECT_EQ(error_of(second), ncclInternalError);
  EXPECT_EQ(all, Numbers(64, 0.0F));
  const auto found = take_violations();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_NE(found[0].find("counts differ: 3 and 2"), std::string::npos) << found[0];
  EXPECT_NE(found[1].find("types differ"), std::string::npos) << found[1];
}

TEST_F(NcclRules, InPlaceMeansTheRanksOwnPlace) {
  all.assign(64, static_cast<float>(me));
  EXPECT_EQ(ncclAllGather(&all[2 * me], all.data(), 2, ncclFloat32, first, stream), ncclSuccess);
  cudaStreamSynchronize(stream);
  for (int r = 0; r < ranks; ++r) EXPECT_EQ(all[2 * r], static_cast<float>(r));
  EXPECT_EQ(ncclAllGather(&all[2 * me + 1], all.data(), 2, ncclFloat32, first, stream),
            ncclInvalidUsage);
  expect_violation("overlaps");
  EXPECT_EQ(ncclReduceScatter(all.data(), &all[2 * me], 2, ncclFloat32, ncclSum, first, stream),
            ncclSuccess);
  EXPECT_EQ(ncclReduceScatter(all.data(), &all[2 * me + 1], 2, ncclFloat32, ncclSum, first, stream),
            ncclInvalidUsage);
  expect_violation("overlaps");
  cudaStreamSynchronize(stream);
}

TEST_F(NcclRules, MessagesOfAGroupDoNotOverlap) {
  ncclGroupStart();
  EXPECT_EQ(ncclRecv(all.data(), 4, ncclFloat32, (me + 1) % ranks, first, stream), ncclSuccess);
  EXPECT_EQ(ncclSend(&all[3], 1, ncclFloat32, (me + 1) % ranks, first, stream), ncclInvalidUsage);
  expect_violation("that another one of the group uses");
  ncclGroupEnd();
}

TEST_F(NcclRules, MessagesNeedAGroupAndGroupsAnEnd) {
  EXPECT_EQ(ncclSend(mine.data(), 1, ncclFloat32, (me + 1) % ranks, first, stream),
            ncclInvalidUsage);
  expect_violation("outside of groups");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidUsage);
  ncclGroupStart();
  EXPECT_EQ(gather(first, stream), ncclInvalidUsage);
  expect_violation("within a group");
  cudaStreamSynchronize(stream);
  expect_violation("before the end of a group");
  ncclGroupEnd();
}

// NCCL drops the whole group, and puts off what follows in one that is open.
TEST_F(NcclRules, AFailedCallDropsItsGroup) {
  ncclGroupStart();
  EXPECT_EQ(ncclSend(mine.data(), 2, ncclFloat32, (me + 1) % ranks, first, stream), ncclSuccess);
  EXPECT_EQ(ncclRecv(nullptr, 2, ncclFloat32, (me + ranks - 1) % ranks, first, stream),
            ncclInvalidArgument);
  EXPECT_EQ(ncclCommAbort(second), ncclInvalidUsage);
  expect_violation("ncclCommAbort within a group");
  EXPECT_EQ(ncclGroupEnd(), ncclInvalidArgument);
  EXPECT_EQ(message(first, 2), ncclSuccess) << "the next group is a new one";
  cudaStreamSynchronize(stream);
  Numbers expected(64, 0.0F);
  if (me == 1) expected[0] = expected[1] = 1.0F;
  EXPECT_EQ(all, expected);
}

TEST_F(NcclRules, CommunicatorsOfADeviceNeedOneOrder) {
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "0", 1);
  forget_nccl_environment();
  ncclComm_t third = nullptr;
  ASSERT_EQ(init(third), ncclSuccess);
  EXPECT_EQ(gather(first, stream), ncclSuccess);
  EXPECT_EQ(gather(second, other), ncclInvalidUsage);
  expect_violation("left open");
  EXPECT_EQ(gather(second, stream), ncclSuccess) << "the stream orders them";
  cudaEvent_t event = nullptr;
  cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(other, event, 0);
  EXPECT_EQ(gather(third, other), ncclSuccess) << "the event orders them";
  cudaStreamSynchronize(other);
  EXPECT_EQ(gather(first, stream), ncclSuccess) << "the host waited";
  cudaStreamSynchronize(stream);
  cudaEventDestroy(event);
  EXPECT_EQ(ncclCommDestroy(third), ncclSuccess);
}

TEST_F(NcclRules, OrdersThatDifferAreReported) {
  EXPECT_EQ(message(me == 0 ? first : second, 2), ncclSuccess);
  EXPECT_EQ(message(me == 0 ? second : first, 2), ncclSuccess);
  cudaStreamSynchronize(stream);
  if (me == 1) expect_violation("in different orders");
}

TEST_F(NcclRules, AWaitForARankThatNeverComesIsReported) {
  set_patience(0.5);
  if (me == 0) {
    EXPECT_EQ(gather(first, stream), ncclSuccess);
  }
  cudaStreamSynchronize(stream);
  if (me == 0) expect_violation("waits in vain for rank 1");
  group.barrier();
}

TEST_F(NcclRules, DestroyingWaitsForAllAndAbortingForNobody) {
  using Clock = std::chrono::steady_clock;
  group.barrier();
  const auto begin = Clock::now();
  if (me == 0) std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(ncclCommDestroy(first), ncclSuccess);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(250));
  EXPECT_EQ(ncclCommDestroy(first), ncclInvalidArgument);
  expect_violation("that is none");
  first = nullptr;
  group.barrier();
  if (me == 0) {
    EXPECT_EQ(gather(second, stream), ncclSuccess);
    EXPECT_EQ(ncclCommAbort(second), ncclSuccess);
    cudaStreamSynchronize(stream);
    EXPECT_EQ(all, Numbers(64, 0.0F));
  }
  group.barrier();
  if (me != 0) {
    EXPECT_EQ(error_of(second), ncclRemoteError);
    EXPECT_EQ(ncclCommDestroy(second), ncclRemoteError);
    expect_violation("ncclCommDestroy waits in vain for rank 0");
  }
  second = nullptr;
}

TEST_F(NcclRules, HandlesThatAreGoneAreNoticed) {
  cudaStream_t gone = nullptr;
  cudaStreamCreate(&gone);
  cudaStreamDestroy(gone);
  EXPECT_EQ(gather(first, gone), ncclInvalidUsage);
  expect_violation("a stream that is gone");
  const ncclComm_t ended = first;
  EXPECT_EQ(ncclCommDestroy(first), ncclSuccess);
  first = nullptr;
  EXPECT_EQ(gather(ended, stream), ncclInvalidArgument);
  expect_violation("a communicator that is gone");
  EXPECT_EQ(error_of(ended), ncclSuccess);
  expect_violation("a communicator that is gone");
}

TEST_F(NcclRules, StreamsBelongToTheCommunicatorsDevice) {
  std::thread([&] {
    cudaStream_t elsewhere = nullptr;
    cudaStreamCreate(&elsewhere);
    expect_violation("takes memory on device 0");
    EXPECT_EQ(gather(first, elsewhere), ncclInvalidUsage);
    expect_violation("a stream of another device");
    cudaStreamDestroy(elsewhere);
  }).join();
}

TEST_F(NcclRules, RanksHaveDevicesOfTheirOwn) {
  set_bus("0000:18:00.0");
  ncclComm_t third = nullptr;
  EXPECT_EQ(init(third), ncclInvalidUsage);
  set_bus("");
}

}  // namespace
}  // namespace kzero::doubles
