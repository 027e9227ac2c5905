// Reports to ThreadSanitizer what MPI reads and writes of the device's and of pinned memory,
// because it does not see into libraries: MPI's own profiling interface, for the calls that move
// elements. Compiled without ThreadSanitizer's instructions.
#include <mpi.h>

#include <map>
#include <span>
#include <vector>

#include "stream_order/device_memory.hpp"
#include "stream_order/hidden_lock.hpp"

namespace {

using kzero::stream_order::HiddenLock;
using kzero::stream_order::reads;
using kzero::stream_order::writes;

struct Message {
  void* data;
  std::size_t bytes;
  bool is_sent;

  void access() const { is_sent ? reads(data, bytes) : writes(data, bytes); }
};

HiddenLock lock;
std::map<MPI_Request, Message> under_way;

/// MPI reads and writes at any time until the request is done: at its beginning and its end will
/// do.
void started(const MPI_Request& request, const Message& message) {
  message.access();
  const std::lock_guard guard(lock);
  under_way[request] = message;
}

void ended(std::span<const MPI_Request> requests) {
  const std::lock_guard guard(lock);
  for (const MPI_Request& request : requests) {
    const auto found = under_way.find(request);
    if (found == under_way.end()) continue;
    found->second.access();
    under_way.erase(found);
  }
}

std::size_t bytes_of(int count, MPI_Datatype type) {
  int size = 0;
  if (type != MPI_DATATYPE_NULL) PMPI_Type_size(type, &size);
  return static_cast<std::size_t>(count) * static_cast<std::size_t>(size);
}

}  // namespace

int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int status = PMPI_Isend(data, count, type, to, tag, comm, request);
  started(*request, {const_cast<void*>(data), bytes_of(count, type), true});
  return status;
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm,
              MPI_Request* request) {
  const int status = PMPI_Irecv(data, count, type, from, tag, comm, request);
  started(*request, {data, bytes_of(count, type), false});
  return status;
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  ended({requests, static_cast<std::size_t>(count)});
  return PMPI_Waitall(count, requests, statuses);
}

int MPI_Testall(int count, MPI_Request* requests, int* done, MPI_Status* statuses) {
  const std::vector<MPI_Request> tested(requests, requests + count);
  const int status = PMPI_Testall(count, requests, done, statuses);
  if (*done) ended(tested);
  return status;
}

int MPI_Allgather(const void* mine, int sent, MPI_Datatype sent_type, void* all, int received,
                  MPI_Datatype type, MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  if (mine != MPI_IN_PLACE) reads(mine, bytes_of(sent, sent_type));
  writes(all, bytes_of(received * ranks, type));
  return PMPI_Allgather(mine, sent, sent_type, all, received, type, comm);
}

int MPI_Alltoall(const void* mine, int sent, MPI_Datatype sent_type, void* all, int received,
                 MPI_Datatype type, MPI_Comm comm) {
  int ranks = 0;
  PMPI_Comm_size(comm, &ranks);
  if (mine != MPI_IN_PLACE) reads(mine, bytes_of(sent * ranks, sent_type));
  writes(all, bytes_of(received * ranks, type));
  return PMPI_Alltoall(mine, sent, sent_type, all, received, type, comm);
}
