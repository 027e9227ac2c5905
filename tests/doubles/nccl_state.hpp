// The communicators of the stand-in for NCCL, and the calls by which they move data.
#pragma once

#include <mpi.h>
#include <nccl.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "doubles/cuda_runtime.hpp"
#include "doubles/nccl_shared.hpp"

// Freed communicators stay allocated, so that their use is noticed.
struct ncclComm {
  MPI_Comm ranks = MPI_COMM_NULL;
  std::unique_ptr<kzero::doubles::SharedRanks> shared;
  std::int64_t id = 0;  // the same on all ranks
  int rank = 0, size = 1;
  int device = 0;
  bool lives = true;
  std::atomic<bool> is_aborted = false;
  std::optional<std::chrono::steady_clock::time_point> abort_seen{};  // of another rank
  std::atomic<ncclResult_t> error = ncclSuccess;
  std::array<std::uint64_t, kzero::doubles::max_ranks> launched{};  // with each rank
  kzero::doubles::Position last;  // after the operation that was enqueued last
};

namespace kzero::doubles {

/// Communicators of this rank that were neither destroyed nor aborted.
std::vector<ncclComm_t>& communicators();

double patience();

/// Whether this thread has begun a group that has no end yet.
bool is_in_group();

/// Whether operations of several communicators begin in the order of the host's calls.
bool keeps_launch_order();

/// Notes a violation, and an error that the communicator reports asynchronously.
void fail(ncclComm_t comm, const std::string& what);

/// One message of a group.
struct Message {
  void* data;
  ncclDataType_t type;
  std::size_t elements;
  int peer;
  bool is_sent;
};

std::size_t width_of(ncclDataType_t type);

/// Returns an operation as this rank enqueues it now.
Header header_of(ncclComm_t comm, int kind, ncclDataType_t type, std::size_t elements,
                 int reduction = 0);

/// Compares the header with those of the other ranks, which wait for one another. Returns whether
/// the operation may run.
bool agree(ncclComm_t comm, const Header& header);

/// Moves the messages, whose other ends are to know the same type and count.
void exchange(ncclComm_t comm, const Header& header, const std::vector<Message>& messages);

/// Waits for requests of MPI; without success if a rank is gone.
bool finish(ncclComm_t comm, std::vector<MPI_Request>& requests, const char* what);

}  // namespace kzero::doubles
