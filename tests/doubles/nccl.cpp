// A stand-in for NCCL on host memory over MPI: the calls that kzero makes, in NCCL's documented
// semantics, enqueued on the stand-in's streams. Calls against NCCL's rules return its errors.
#include <mpi.h>
#include <nccl.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "base/float16.hpp"
#include "doubles/device.hpp"
#include "doubles/nccl.hpp"

struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  ncclResult_t error = ncclSuccess;
  int id = 0;
};

namespace kzero::doubles {

NcclCalls& nccl_calls() {
  static NcclCalls calls;
  return calls;
}

}  // namespace kzero::doubles

namespace {

using kzero::bf16;
using kzero::fp16;
using kzero::doubles::nccl_calls;
namespace doubles = kzero::doubles;

/// One message of a group.
struct Message {
  void* data;
  std::size_t bytes;
  int peer;
  MPI_Comm ranks;
  bool is_sent;
};

std::vector<ncclComm*> alive;
std::vector<Message> group;
cudaStream_t group_stream = nullptr;
int group_depth = 0, next_id = 1, version = 0;

std::size_t width_of(ncclDataType_t type) {
  switch (type) {
    case ncclFloat32:
      return 4;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    default:
      return 0;
  }
}

int size_of(ncclComm_t comm) {
  int size = 0;
  MPI_Comm_size(comm->ranks, &size);
  return size;
}

int rank_of(ncclComm_t comm) {
  int rank = 0;
  MPI_Comm_rank(comm->ranks, &rank);
  return rank;
}

// Alone, a send and a receive would each block: only groups are safe.
ncclResult_t add_to_group(const Message& message, ncclDataType_t type, cudaStream_t stream) {
  if (group_depth == 0 || width_of(type) == 0) return ncclInvalidUsage;
  if (!group.empty() && stream != group_stream) return ncclInvalidUsage;
  group_stream = stream;
  group.push_back(message);
  return ncclSuccess;
}

void exchange(const std::vector<Message>& messages) {
  std::vector<MPI_Request> requests;
  for (const auto& [data, bytes, peer, ranks, is_sent] : messages) {
    const int count = static_cast<int>(bytes);
    if (is_sent) {
      MPI_Isend(data, count, MPI_BYTE, peer, 0, ranks, &requests.emplace_back());
    } else {
      MPI_Irecv(data, count, MPI_BYTE, peer, 0, ranks, &requests.emplace_back());
    }
  }
  MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
}

/// The library's own order: from the last rank to the first, in T.
template <class T>
void add_backwards(const std::vector<char>& all, std::size_t count, int ranks, void* out) {
  const auto* values = reinterpret_cast<const T*>(all.data());
  auto* sums = static_cast<T*>(out);
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (int r = ranks - 1; r >= 0; --r)
      sum = static_cast<float>(static_cast<T>(
          sum + static_cast<float>(values[static_cast<std::size_t>(r) * count + i])));
    sums[i] = static_cast<T>(sum);
  }
}

}  // namespace

namespace kzero::doubles {

void set_nccl_version(int value) { version = value; }

void fail_all_communicators() {
  for (ncclComm* comm : alive) comm->error = ncclRemoteError;
}

}  // namespace kzero::doubles

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
  int root = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &root);
  const int words[] = {4711, root, next_id++};
  std::memcpy(id->internal, words, sizeof words);
  return ncclSuccess;
}

// Ranks that hold the same identity meet at the rank that made it.
ncclResult_t ncclCommInitRank(ncclComm_t* comm, int ranks, ncclUniqueId id, int rank) {
  int words[3] = {};
  std::memcpy(words, id.internal, sizeof words);
  if (words[0] != 4711 || rank < 0 || rank >= ranks) return ncclInvalidArgument;
  const char* ordered = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  if (!ordered || std::string_view(ordered) != "1") ++nccl_calls().unordered;
  const int root = words[1], tag = 100 + words[2];
  int me = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  std::vector<int> members(static_cast<std::size_t>(ranks));
  if (me == root) {
    members[static_cast<std::size_t>(rank)] = me;
    for (int i = 1; i < ranks; ++i) {
      int other[2] = {};
      MPI_Recv(other, 2, MPI_INT, MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      members[static_cast<std::size_t>(other[0])] = other[1];
    }
    for (const int member : members) {
      if (member != me) MPI_Send(members.data(), ranks, MPI_INT, member, tag, MPI_COMM_WORLD);
    }
  } else {
    const int mine[] = {rank, me};
    MPI_Send(mine, 2, MPI_INT, root, tag, MPI_COMM_WORLD);
    MPI_Recv(members.data(), ranks, MPI_INT, root, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  }
  MPI_Group world = MPI_GROUP_NULL, part = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  MPI_Group_incl(world, ranks, members.data(), &part);
  *comm = new ncclComm;
  (*comm)->id = tag;
  MPI_Comm_create_group(MPI_COMM_WORLD, part, tag, &(*comm)->ranks);
  MPI_Group_free(&part);
  MPI_Group_free(&world);
  alive.push_back(*comm);
  return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
  std::erase(alive, comm);
  MPI_Comm_free(&comm->ranks);
  delete comm;
  ++nccl_calls().destroyed;
  return ncclSuccess;
}

ncclResult_t ncclCommAbort(ncclComm_t comm) {
  ++nccl_calls().aborted;
  ncclCommDestroy(comm);
  --nccl_calls().destroyed;
  return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t* error) {
  *error = comm->error;
  return ncclSuccess;
}

ncclResult_t ncclGroupStart() {
  ++group_depth;
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group_depth == 0) return ncclInvalidUsage;
  if (--group_depth > 0 || group.empty()) return ncclSuccess;
  doubles::enqueue(group_stream, [messages = std::move(group)] { exchange(messages); });
  group.clear();
  return ncclSuccess;
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ++nccl_calls().sends;
  return add_to_group({const_cast<void*>(data), count * width_of(type), peer, comm->ranks, true},
                      type, stream);
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return add_to_group({data, count * width_of(type), peer, comm->ranks, false}, type, stream);
}

ncclResult_t ncclAllGather(const void* mine, void* all, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  if (width_of(type) == 0) return ncclInvalidArgument;
  const std::size_t bytes = count * width_of(type);
  doubles::enqueue(stream, [=, ranks = comm->ranks, rank = rank_of(comm)] {
    auto* own = static_cast<char*>(all) + static_cast<std::size_t>(rank) * bytes;
    if (bytes > 0 && own != mine) std::memmove(own, mine, bytes);
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, static_cast<int>(bytes), MPI_BYTE,
                  ranks);
  });
  ++nccl_calls().all_gathers;
  return ncclSuccess;
}

ncclResult_t ncclReduceScatter(const void* all, void* own, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (operation != ncclSum || width_of(type) == 0) return ncclInvalidArgument;
  doubles::enqueue(stream, [=, members = comm->ranks, ranks = size_of(comm)] {
    const int bytes = static_cast<int>(count * width_of(type));
    std::vector<char> received(static_cast<std::size_t>(bytes * ranks));
    MPI_Alltoall(all, bytes, MPI_BYTE, received.data(), bytes, MPI_BYTE, members);
    if (type == ncclFloat32) add_backwards<float>(received, count, ranks, own);
    if (type == ncclBfloat16) add_backwards<bf16>(received, count, ranks, own);
    if (type == ncclFloat16) add_backwards<fp16>(received, count, ranks, own);
  });
  ++nccl_calls().reduce_scatters;
  return ncclSuccess;
}
