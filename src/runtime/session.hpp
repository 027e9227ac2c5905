// The lifetime of MPI and Kokkos: initialized in that order, finalized in reverse. One session per
// program.
#pragma once

#include <functional>
#include <memory>

#include "base/types.hpp"

namespace kzero::runtime {

struct SessionOptions {
  Index threads = 0;  // per rank; 0: OMP_NUM_THREADS, otherwise the node's cores / its ranks
  /// Chooses `threads` after MPI and before Kokkos are initialized. Collective. Throws only errors
  /// that every rank throws alike.
  std::function<Index()> choose_threads{};
  /// True for commands that start a heartbeat: start_limit() (call_limit.hpp) bounds the time until
  /// end_start(). Otherwise it bounds the constructor alone.
  bool has_heartbeat = false;
};

class CallLimit;

class Session {
 public:
  /// Collective over all processes of the launch. Throws Error(other) if MPI grants too low a
  /// thread level.
  explicit Session(const SessionOptions& options);
  /// Collective over all processes. If MPI does not let go within finalize_limit (call_limit.hpp),
  /// ends this process with the code given to leave_on_signals().
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }
  int node_rank() const { return node_rank_; }  // among the ranks of this node
  int node_size() const { return node_size_; }
  Index threads() const { return threads_; }
  /// The number of cores that the ranks of this node may use in total; 0 if the system does not
  /// tell.
  Index node_cores() const { return node_cores_; }

  /// Ends the time limit on the start. From now on a heartbeat detects lost nodes.
  void end_start() const;

  /// Returns true on every rank if `mine` is true on any. Collective over all ranks.
  bool any_rank(bool mine) const;

 private:
  Index chosen_threads(const SessionOptions& options) const;

  int rank_ = 0;
  int size_ = 1;
  int node_rank_ = 0;
  int node_size_ = 1;
  Index threads_ = 1;
  Index node_cores_ = 0;
  mutable std::unique_ptr<CallLimit> start_limit_;
};

/// Kokkos without MPI, for a program of one process that measures: initialized with so many
/// threads, and finalized by the destructor.
class KokkosAlone {
 public:
  explicit KokkosAlone(Index threads);
  ~KokkosAlone();
  KokkosAlone(const KokkosAlone&) = delete;
  KokkosAlone& operator=(const KokkosAlone&) = delete;
};

/// The exit code, for main to return. Ends the process here if its session has left MPI without
/// MPI_Finalize, because destructors of MPI's libraries must not run then.
int ended(int exit_code);

}  // namespace kzero::runtime
