// A stand-in for NCCL: communicators. Calls against NCCL's rules return its errors and are noted.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>
#include <string_view>
#include <thread>

#include "doubles/nccl.hpp"
#include "doubles/nccl_state.hpp"

namespace kzero::doubles {

namespace {

constexpr int mark = 4711;

struct Id {
  int mark, root, number, process;
};

int next_number = 1, version = 0;
double seconds = 200, delay = 0;
int starts_left = -1;         // until one fails; below 0: none does
std::optional<bool> ordered;  // what the library read from its environment
std::vector<std::unique_ptr<ncclComm>> all;

bool is_alive(ncclComm_t comm) {
  return std::ranges::find(communicators(), comm) != communicators().end();
}

/// The ranks in the launch that hold the same id, which meet at the one that made it.
std::vector<int> members_of(const Id& id, int ranks, int rank) {
  const int tag = 100 + id.number;
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  if (me != id.root) {
    const int mine[] = {rank, me};
    MPI_Send(mine, 2, MPI_INT, id.root, tag, MPI_COMM_WORLD);
    MPI_Recv(members.data(), ranks, MPI_INT, id.root, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return members;
  }
  members[rank] = me;
  for (int i = 1; i < ranks; ++i) {
    int other[2] = {};
    MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    members[other[0]] = other[1];
  }
  for (const int member : members) {
    if (member != me) MPI_Send(members.data(), ranks, MPI_INT, member, tag, MPI_COMM_WORLD);
  }
  return members;
}

MPI_Comm join(const std::vector<int>& members, int tag) {
  MPI_Group world = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  MPI_Comm joined = MPI_COMM_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &part);
  MPI_Comm_create_group(MPI_COMM_WORLD, part, tag, &joined);
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  return joined;
}

/// Whether two of the ranks compute on one device of one host. NCCL_HOSTID names the host.
bool share_a_device(MPI_Comm ranks, int size) {
  constexpr int bus_length = 32, length = 128;
  char bus[bus_length] = {}, mine[length] = {};
  cudaDeviceGetPCIBusId(bus, bus_length, current_device());
  const char* const host = std::getenv("NCCL_HOSTID");
  std::snprintf(mine, length, "%s of %s", bus, host ? host : "here");
  std::vector<char> names(static_cast<std::size_t>(length * size));
  MPI_Allgather(mine, length, MPI_BYTE, names.data(), length, MPI_BYTE, ranks);
  std::set<std::string> different;
  for (int r = 0; r < size; ++r) different.emplace(&names[length * r]);
  return static_cast<int>(different.size()) < size;
}

void be_late() { std::this_thread::sleep_for(std::chrono::duration<double>(delay)); }

/// Checks what the end of a communicator has to keep to.
ncclResult_t check_end(ncclComm_t comm, const std::string& function) {
  if (!is_alive(comm)) {
    violate(function + " of a communicator that is none");
    return ncclInvalidArgument;
  }
  if (!is_in_group()) return ncclSuccess;
  violate(function + " within a group, which puts it off");
  return ncclInvalidUsage;
}

/// Ends the communicator on this rank. After an abort MPI's is left: freeing it is collective.
void remove(ncclComm_t comm) {
  std::erase(communicators(), comm);
  comm->lives = false;
}

class CommunicatorsAreEnded : public testing::Environment {
 public:
  void TearDown() override { EXPECT_TRUE(communicators().empty()) << "communicators left"; }
};
[[maybe_unused]] const auto* environment =
    testing::AddGlobalTestEnvironment(new CommunicatorsAreEnded);

}  // namespace

NcclCalls& nccl_calls() {
  static NcclCalls calls;
  return calls;
}

std::vector<ncclComm_t>& communicators() {
  static std::vector<ncclComm_t> alive;
  return alive;
}

void set_nccl_version(int value) { version = value; }
void set_patience(double value) { seconds = value; }
double patience() { return seconds; }
void set_delay(double value) { delay = value; }
void fail_start(int after) { starts_left = after; }
void forget_nccl_environment() { ordered.reset(); }
bool keeps_launch_order() { return ordered.value_or(false); }

void fail_all_communicators() {
  for (ncclComm* comm : communicators()) comm->error = ncclRemoteError;
}

void fail(ncclComm_t comm, const std::string& what) {
  violate("rank " + std::to_string(comm->rank) + " of NCCL: " + what);
  comm->error = ncclInternalError;
}

}  // namespace kzero::doubles

using namespace kzero::doubles;  // the names of NCCL's functions are global

const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error"
                                   : "some error";
}

ncclResult_t ncclGetVersion(int* value) {
  *value = version > 0 ? version : 22902;
  return ncclSuccess;
}

ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  std::memset(id, 0, sizeof *id);
  Id words{mark, 0, next_number++, ::getpid()};
  MPI_Comm_rank(MPI_COMM_WORLD, &words.root);
  std::memcpy(id->internal, &words, sizeof words);
  return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  Id words{};
  std::memcpy(&words, id.internal, sizeof words);
  if (words.mark != mark || rank < 0 || rank >= ranks || ranks > max_ranks)
    return ncclInvalidArgument;
  if (starts_left >= 0 && starts_left-- == 0) return ncclSystemError;
  be_late();
  if (!ordered) {
    const char* value = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
    ordered = value && std::string_view(value) == "1";
  }
  const std::vector<int> members = members_of(words, ranks, rank);
  auto made = std::make_unique<ncclComm>();
  made->id = std::int64_t{1000} * words.number + words.root;
  made->rank = rank;
  made->size = ranks;
  made->device = current_device();
  made->ranks = join(members, 100 + words.number);
  made->shared = std::make_unique<SharedRanks>(
      "/kzero-nccl-" + std::to_string(words.process) + "-" + std::to_string(words.number), ranks,
      rank);
  MPI_Barrier(made->ranks);
  if (rank == 0) made->shared->unlink();
  *comm = all.emplace_back(std::move(made)).get();
  if (share_a_device((*comm)->ranks, ranks)) {
    MPI_Comm_free(&(*comm)->ranks);
    return ncclInvalidUsage;
  }
  communicators().push_back(*comm);
  return ncclSuccess;
}

// Lets what is enqueued arrive, and waits for every rank.
ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  if (const auto status = check_end(comm, "ncclCommDestroy")) return status;
  be_late();
  if (comm->last.stream) run_to(comm->last);
  const int missing = comm->shared->meet(std::chrono::duration<double>(patience()));
  remove(comm);
  ++nccl_calls().destroyed;
  if (missing < 0) {
    MPI_Comm_free(&comm->ranks);
    return ncclSuccess;
  }
  fail(comm, "ncclCommDestroy waits in vain for rank " + std::to_string(missing));
  return ncclRemoteError;
}

// Waits for nobody, and what is enqueued does nothing.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
  if (const auto status = check_end(comm, "ncclCommAbort")) return status;
  comm->is_aborted = true;
  comm->shared->abort();
  remove(comm);
  ++nccl_calls().aborted;
  return ncclSuccess;
}

// Another rank that has aborted shows as one that is gone.
ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  if (!comm->lives) {
    violate("ncclCommGetAsyncError of a communicator that is gone");
    return ncclInvalidArgument;
  }
  *error = comm->error;
  if (*error == ncclSuccess && comm->shared->aborted() >= 0) *error = ncclRemoteError;
  return ncclSuccess;
}
