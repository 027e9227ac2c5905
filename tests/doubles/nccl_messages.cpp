// A stand-in for NCCL: data between ranks, over MPI. No rank waits for another without an end.
#include <cstring>
#include <thread>

#include "doubles/nccl_state.hpp"

namespace kzero::doubles {

namespace {

/// Buffers of messages that never arrived: MPI still knows them.
std::vector<std::vector<std::vector<char>>> abandoned;

std::chrono::steady_clock::time_point deadline() {
  return std::chrono::steady_clock::now() +
         std::chrono::duration_cast<std::chrono::steady_clock::duration>(
             std::chrono::duration<double>(patience()));
}

/// Returns why nobody needs to wait any longer; empty if there is no reason.
std::string reason_to_end(ncclComm_t comm, std::chrono::steady_clock::time_point limit) {
  if (comm->is_aborted) return "was aborted";
  if (const int rank = comm->shared->aborted(); rank >= 0) {
    // Messages that the rank sent before are on their way.
    const auto now = std::chrono::steady_clock::now();
    if (!comm->abort_seen) comm->abort_seen = now;
    if (now - *comm->abort_seen > std::chrono::milliseconds(200))
      return "waits for rank " + std::to_string(rank) + ", which has aborted";
  }
  return std::chrono::steady_clock::now() > limit ? "waits in vain" : "";
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(20)); }

/// Receives what a peer sends, header first, into the message's place.
bool receive(ncclComm_t comm, Header header, const Message& message,
             std::chrono::steady_clock::time_point limit) {
  MPI_Message found = MPI_MESSAGE_NULL;
  MPI_Status status;
  for (int is_here = 0; is_here == 0;) {
    MPI_Improbe(message.peer, 0, comm->ranks, &is_here, &found, &status);
    if (is_here != 0) break;
    if (const std::string reason = reason_to_end(comm, limit); !reason.empty()) {
      if (!comm->is_aborted)
        fail(comm, "a receive from rank " + std::to_string(message.peer) + " " + reason);
      return false;
    }
    pause();
  }
  int bytes = 0;
  MPI_Get_count(&status, MPI_BYTE, &bytes);
  std::vector<char> data(static_cast<std::size_t>(bytes));
  MPI_Mrecv(data.data(), bytes, MPI_BYTE, &found, MPI_STATUS_IGNORE);
  Header theirs;
  std::memcpy(&theirs, data.data(), sizeof theirs);
  header.type = message.type;
  header.elements = message.elements;
  if (const std::string problem = difference(header, theirs); !problem.empty()) {
    fail(comm, "a send and its receive: " + problem);
    return false;
  }
  std::memcpy(message.data, data.data() + sizeof theirs, data.size() - sizeof theirs);
  return true;
}

}  // namespace

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

Header header_of(ncclComm_t comm, int kind, ncclDataType_t type, std::size_t elements,
                 int reduction) {
  Header header{.kind = kind, .type = type, .reduction = reduction, .elements = elements};
  for (const ncclComm_t each : communicators()) {
    if (each != comm && header.counts + 1 >= static_cast<int>(header.before.size())) continue;
    header.before[header.counts++] = {each->id, each->rank, each->launched};
  }
  return header;
}

bool agree(ncclComm_t comm, const Header& header) {
  std::vector<Header> all(static_cast<std::size_t>(comm->size));
  const int missing =
      comm->shared->meet(header, std::chrono::duration<double>(patience()), all.data());
  if (missing >= 0) {
    if (!comm->is_aborted)
      fail(comm, "a collective waits in vain for rank " + std::to_string(missing));
    return false;
  }
  for (const Header& theirs : all) {
    const std::string problem = difference(header, theirs);
    if (problem.empty()) continue;
    fail(comm, "a collective: " + problem);
    return false;
  }
  return true;
}

bool finish(ncclComm_t comm, std::vector<MPI_Request>& requests, const char* what) {
  const auto limit = deadline();
  for (int is_done = 0;;) {
    MPI_Testall(static_cast<int>(requests.size()), requests.data(), &is_done, MPI_STATUSES_IGNORE);
    if (is_done != 0) return true;
    if (const std::string reason = reason_to_end(comm, limit); !reason.empty()) {
      if (!comm->is_aborted) fail(comm, std::string(what) + " " + reason);
      return false;
    }
    pause();
  }
}

void exchange(ncclComm_t comm, const Header& header, const std::vector<Message>& messages) {
  const auto limit = deadline();
  std::vector<MPI_Request> requests;
  std::vector<std::vector<char>> sent;
  for (const Message& message : messages) {
    if (!message.is_sent) continue;
    Header mine = header;
    mine.type = message.type;
    mine.elements = message.elements;
    const std::size_t bytes = message.elements * width_of(message.type);
    std::vector<char>& data = sent.emplace_back(sizeof mine + bytes);
    std::memcpy(data.data(), &mine, sizeof mine);
    if (bytes > 0) std::memcpy(data.data() + sizeof mine, message.data, bytes);
    MPI_Isend(data.data(), static_cast<int>(data.size()), MPI_BYTE, message.peer, 0, comm->ranks,
              &requests.emplace_back());
  }
  for (const Message& message : messages) {
    if (!message.is_sent && !receive(comm, header, message, limit)) break;
  }
  if (!finish(comm, requests, "a send")) abandoned.push_back(std::move(sent));
}

}  // namespace kzero::doubles
