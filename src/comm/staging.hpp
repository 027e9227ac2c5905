// Pinned host memory through which device data passes to an MPI library that cannot read it.
#pragma once

#include "comm/communicator.hpp"

namespace kzero::comm {

/// The memory from which an MPI library can send: host memory only, or device memory too.
enum class Reach { host, device };

/// Returns the reach of this build's MPI library. If kernels run on the host, all memory is in
/// reach.
Reach mpi_reach();

/// One buffer for a chunk to send and one for a chunk to receive, with their own stream. These two
/// chunks per communicator are in no category of the ledger.
class Staging {
 public:
  explicit Staging(Index bytes);

  /// Copies `chunk` to host memory; the copy is valid until the next call.
  ConstSpan bring(const ConstSpan& chunk);
  /// The host buffer in which to receive the data of `chunk`.
  Span room(const Span& chunk) const;
  /// Copies the received data to `chunk`.
  void take(const Span& chunk);

 private:
  using HostBytes = Kokkos::View<std::byte*, runtime::HostMemory>;

  Execution stream_;
  HostBytes out_, in_;
};

}  // namespace kzero::comm
