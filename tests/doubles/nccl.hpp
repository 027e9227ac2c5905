// What tests ask of the stand-in for NCCL.
#pragma once

namespace kzero::doubles {

struct NcclCalls {
  int sends = 0;
  int all_gathers = 0;
  int reduce_scatters = 0;
  int destroyed = 0;
  int aborted = 0;
};

/// Calls of this rank so far.
NcclCalls& nccl_calls();

/// From now on every communicator of this rank reports an asynchronous error.
void fail_all_communicators();

}  // namespace kzero::doubles
