// A stand-in for NCCL: groups and operations, in the documented semantics, enqueued on the streams
// of the stand-in for CUDA's runtime.
#include "doubles/nccl.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/float16.hpp"
#include "doubles/nccl_state.hpp"

namespace kzero::doubles {

namespace {

enum Kind { messages = 1, all_gather, reduce_scatter };

constexpr std::size_t max_operations = 2048;  // of a group, by NCCL's guide

/// The calls of a thread since it began a group.
struct Group {
  int depth = 0;
  ncclResult_t error = ncclSuccess;  // of a call in it, which drops them all
  ncclComm_t comm = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Message> messages;
};
thread_local Group group;
Position last_launch;  // of any communicator of this rank
ncclComm_t last_comm = nullptr;

ncclResult_t refuse(ncclComm_t comm, const std::string& what) {
  violate("rank " + std::to_string(comm->rank) + " of NCCL: " + what);
  return ncclInvalidUsage;
}

/// Keeps the error of a call for the end of the group.
ncclResult_t in_group(ncclResult_t status) {
  if (group.depth > 0 && status != ncclSuccess) group.error = status;
  return status;
}

/// Checks what all operations have to keep to.
ncclResult_t check(ncclComm_t comm, const void* data, std::size_t count, ncclDataType_t type,
                   cudaStream_t stream) {
  if (!comm || !comm->lives) {
    violate("an operation of NCCL on a communicator that is gone");
    return ncclInvalidArgument;
  }
  if (width_of(type) == 0 || (!data && count > 0)) return ncclInvalidArgument;
  if (!is_stream(stream)) return refuse(comm, "an operation on a stream that is gone");
  if (device_of(stream) != comm->device)
    return refuse(comm, "an operation on a stream of another device than the communicator's");
  return ncclSuccess;
}

/// Checks a collective. The stand-in does not put them off until the end of a group.
ncclResult_t check_alone(ncclComm_t comm, const void* data, std::size_t count, ncclDataType_t type,
                         cudaStream_t stream) {
  if (const auto status = check(comm, data, count, type, stream)) return status;
  return group.depth > 0 ? in_group(refuse(comm, "a collective within a group")) : ncclSuccess;
}

/// Enqueues an operation of the communicator with the ranks for which `meets` holds. Operations of
/// several communicators need one order on every rank: the host's, or that of events.
template <class Meets>
ncclResult_t launch(ncclComm_t comm, cudaStream_t stream, const Meets& meets,
                    std::function<void()> run) {
  const bool follows_other = last_launch.stream && last_comm != comm && last_comm->lives;
  if (follows_other && !keeps_launch_order() && !is_after(last_launch, stream))
    return refuse(comm, "an operation whose order with another communicator's is left open");
  for (int r = 0; r < comm->size; ++r) {
    if (r != comm->rank && meets(r)) ++comm->launched[r];
  }
  enqueue(stream, [comm, before = follows_other || last_comm == comm ? last_launch : Position(),
                   run = std::move(run)] {
    if (before.stream) run_to(before);  // as NCCL's launches wait for one another
    if (!comm->is_aborted && comm->error == ncclSuccess) run();
  });
  comm->last = last_launch = end_of(stream);
  last_comm = comm;
  return ncclSuccess;
}

bool overlap(const void* a, std::size_t a_bytes, const void* b, std::size_t b_bytes) {
  const auto *first = static_cast<const char*>(a), *second = static_cast<const char*>(b);
  return first < second + b_bytes && second < first + a_bytes;
}

// Alone, a send and a receive would each block: only groups are safe. NCCL takes several streams in
// a group, which then wait for one another; the program has no use for that.
ncclResult_t add_to_group(const Message& message, ncclComm_t comm, cudaStream_t stream) {
  if (const auto status = check(comm, message.data, message.elements, message.type, stream))
    return status;
  if (message.peer < 0 || message.peer >= comm->size) return ncclInvalidArgument;
  if (group.depth == 0) return refuse(comm, "a message outside of groups, which may block");
  if (group.messages.size() == max_operations) return ncclInvalidUsage;
  if (!group.messages.empty() && (stream != group.stream || comm != group.comm))
    return refuse(comm, "a group of several streams or communicators");
  const std::size_t bytes = message.elements * width_of(message.type);
  for (const Message& other : group.messages) {
    if (message.is_sent && other.is_sent) continue;
    if (overlap(message.data, bytes, other.data, other.elements * width_of(other.type)))
      return refuse(comm, "a message into memory that another one of the group uses");
  }
  group.comm = comm;
  group.stream = stream;
  group.messages.push_back(message);
  return ncclSuccess;
}

ncclResult_t launch_group() {
  const auto sent = std::exchange(group.messages, {});
  const ncclComm_t comm = group.comm;
  const Header header = header_of(comm, messages, ncclFloat32, 0);
  const auto meets = [&](int rank) {
    return std::ranges::any_of(sent, [rank](const Message& m) { return m.peer == rank; });
  };
  return launch(comm, group.stream, meets, [=] { exchange(comm, header, sent); });
}

/// A part may be in its own place within the result. Other overlaps are refused.
bool is_misplaced(ncclComm_t comm, const void* part, const void* whole, std::size_t bytes) {
  const char* place =
      static_cast<const char*>(whole) + static_cast<std::size_t>(comm->rank) * bytes;
  return part != place && overlap(part, bytes, whole, bytes * static_cast<std::size_t>(comm->size));
}

const auto everybody = [](int) { return true; };

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

bool is_in_group() { return group.depth > 0; }

}  // namespace kzero::doubles

using namespace kzero::doubles;  // the names of NCCL's functions are global

ncclResult_t ncclGroupStart() {
  set_open_groups(++group.depth);
  return ncclSuccess;
}

ncclResult_t ncclGroupEnd() {
  if (group.depth == 0) return ncclInvalidUsage;
  set_open_groups(--group.depth);
  if (group.depth > 0) return ncclSuccess;
  if (const auto error = std::exchange(group.error, ncclSuccess)) {
    group.messages.clear();
    return error;
  }
  return group.messages.empty() ? ncclSuccess : launch_group();
}

ncclResult_t ncclSend(const void* data, std::size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
  ++nccl_calls().sends;
  return in_group(add_to_group({const_cast<void*>(data), type, count, peer, true}, comm, stream));
}

ncclResult_t ncclRecv(void* data, std::size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
  return in_group(add_to_group({data, type, count, peer, false}, comm, stream));
}

ncclResult_t ncclAllGather(const void* mine, void* all, std::size_t count, ncclDataType_t type,
                           ncclComm_t comm, cudaStream_t stream) {
  if (const auto status = check_alone(comm, mine, count, type, stream)) return status;
  const std::size_t bytes = count * width_of(type);
  if (is_misplaced(comm, mine, all, bytes))
    return refuse(comm, "ncclAllGather into memory that overlaps what is sent");
  ++nccl_calls().all_gathers;
  const Header header = header_of(comm, all_gather, type, count);
  return launch(comm, stream, everybody, [=] {
    if (!agree(comm, header)) return;
    auto* own = static_cast<char*>(all) + static_cast<std::size_t>(comm->rank) * bytes;
    if (bytes > 0 && own != mine) std::memcpy(own, mine, bytes);
    std::vector<MPI_Request> request(1);
    MPI_Iallgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, static_cast<int>(bytes), MPI_BYTE,
                   comm->ranks, request.data());
    finish(comm, request, "ncclAllGather");
  });
}

ncclResult_t ncclReduceScatter(const void* all, void* own, std::size_t count, ncclDataType_t type,
                               ncclRedOp_t operation, ncclComm_t comm, cudaStream_t stream) {
  if (const auto status = check_alone(comm, all, count, type, stream)) return status;
  if (operation != ncclSum) return ncclInvalidArgument;  // the program needs no other
  const std::size_t bytes = count * width_of(type);
  if (is_misplaced(comm, own, all, bytes))
    return refuse(comm, "ncclReduceScatter into memory that overlaps what is sent");
  ++nccl_calls().reduce_scatters;
  const Header header = header_of(comm, reduce_scatter, type, count, operation);
  return launch(comm, stream, everybody, [=] {
    if (!agree(comm, header)) return;
    std::vector<char> received(bytes * static_cast<std::size_t>(comm->size));
    std::vector<MPI_Request> request(1);
    MPI_Ialltoall(all, static_cast<int>(bytes), MPI_BYTE, received.data(), static_cast<int>(bytes),
                  MPI_BYTE, comm->ranks, request.data());
    if (!finish(comm, request, "ncclReduceScatter")) return;
    if (type == ncclFloat32) add_backwards<float>(received, count, comm->size, own);
    if (type == ncclBfloat16) add_backwards<kzero::bf16>(received, count, comm->size, own);
    if (type == ncclFloat16) add_backwards<kzero::fp16>(received, count, comm->size, own);
  });
}
