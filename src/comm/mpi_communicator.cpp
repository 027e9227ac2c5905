#include "comm/mpi_communicator.hpp"

#include <mpi.h>

#include <algorithm>

#include "base/error.hpp"

namespace kzero::comm {

namespace {

// Bytes of one message: large enough for full bandwidth, small enough to stay in a shared cache on
// its way, and far below MPI's limit of 2^31 - 1.
constexpr Index piece_bytes = Index{1} << 20;
constexpr int tag = 1;

void check(int status, const char* what, const std::string& group) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail(ExitCode::other, "{} over group '{}' failed: {}", what, group, std::string(text, length));
}

}  // namespace

void MpiCommunicator::all_to_all(std::span<const ConstSpan> send, std::span<const Span> receive,
                                 Operation operation, Purpose purpose) {
  const int ranks = size(), me = rank();
  KZERO_EXPECT(static_cast<int>(send.size()) == ranks && static_cast<int>(receive.size()) == ranks);
  for (int step = 1; step < ranks; ++step) {
    const int to = (me + step) % ranks, from = (me - step + ranks) % ranks;
    const auto* out = static_cast<const std::byte*>(send[to].data);
    auto* in = static_cast<std::byte*>(receive[from].data);
    const Index out_bytes = send[to].bytes(), in_bytes = receive[from].bytes();
    for (Index at = 0; at < std::max(out_bytes, in_bytes); at += piece_bytes) {
      const Index sent = std::clamp<Index>(out_bytes - at, 0, piece_bytes);
      const Index received = std::clamp<Index>(in_bytes - at, 0, piece_bytes);
      check(MPI_Sendrecv(out + at, static_cast<int>(sent), MPI_BYTE, sent > 0 ? to : MPI_PROC_NULL,
                         tag, in + at, static_cast<int>(received), MPI_BYTE,
                         received > 0 ? from : MPI_PROC_NULL, tag, group_.handle(),
                         MPI_STATUS_IGNORE),
            "exchange", group_.name());
    }
    traffic_.add({group_.name(), operation, purpose}, send[to].elements, out_bytes);
  }
}

void MpiCommunicator::broadcast(Span data, int root, Purpose purpose) {
  auto* at = static_cast<std::byte*>(data.data);
  for (Index left = data.bytes(); left > 0; left -= piece_bytes, at += piece_bytes) {
    check(MPI_Bcast(at, static_cast<int>(std::min(left, piece_bytes)), MPI_BYTE, root,
                    group_.handle()),
          "broadcast", group_.name());
  }
  if (rank() == root && size() > 1) {
    traffic_.add({group_.name(), Operation::broadcast, purpose}, data.elements, data.bytes());
  }
}

}  // namespace kzero::comm
