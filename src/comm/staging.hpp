// Pinned host memory through which device data passes to an MPI library that cannot read it.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

/// What memory an MPI library can send from: the host's alone, or the device's too.
enum class Reach { host, device };

/// Of the MPI library at hand, for this build's device: where kernels run on the host, all memory
/// is in reach.
Reach mpi_reach();

/// Room for a chunk to send and one to receive, on a stream of its own. What it holds, two chunks a
/// communicator, is in no category of the ledger.
class Staging {
 public:
  explicit Staging(Index chunk_bytes);

  /// A copy in host memory of a chunk, until the next call.
  ConstSpan bring(const ConstSpan& chunk);
  /// Where to receive what belongs into `chunk`.
  Span room(const Span& chunk) const;
  /// Copies what lies there into `chunk`.
  void take(const Span& chunk);

 private:
  using HostBytes = Kokkos::View<std::byte*, runtime::HostMemory>;

  Execution stream_;
  HostBytes out_, in_;
};

}  // namespace kzero::comm
