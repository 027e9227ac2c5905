// The stand-in for NCCL, as tests see it.
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

/// The version that the library claims to be; 0: the newest that has everything.
void set_nccl_version(int version);

/// From now on every communicator of this rank reports an asynchronous error.
void fail_all_communicators();

/// How long a rank waits for another before the stand-in calls it a hang; 200 at first.
void set_patience(double seconds);

/// How long this rank stays away when a communicator starts, and when it ends in order; 0 at first.
void set_delay(double seconds);

/// Lets `after` communicators start; the next fails, on each rank that says so.
void fail_start(int after);

/// Makes the next communicator read NCCL's environment again, as the first of a process does.
void forget_nccl_environment();

}  // namespace kzero::doubles
