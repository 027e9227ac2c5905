#include "runtime/session.hpp"

#include <malloc.h>
#include <mpi.h>
#include <sched.h>
#include <unistd.h>

#include <fmt/format.h>

#include <Kokkos_Core.hpp>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <thread>

#include "base/error.hpp"
#include "base/pause.hpp"
#include "runtime/call_limit.hpp"
#include "runtime/execution.hpp"
#include "runtime/host_name.hpp"
#include "runtime/launch.hpp"
#include "runtime/signals.hpp"
#include "runtime/threads.hpp"
#include "runtime/view_layout.hpp"

namespace kzero::runtime {

namespace {

/// If ranks of several nodes call MPI_Finalize right after their last messages, half of all
/// launches hang (finalize_limit). With this pause few do.
constexpr std::chrono::milliseconds pause_before_finalize{500};

bool has_left_mpi = false;

void flush_output() {
  std::cout.flush();
  std::fflush(nullptr);
}

void make_progress() {
  int flag = 0;
  MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
}

/// Waits for all ranks, and sleeps between its looks. MPI_Barrier spins and yields: on busy cores
/// it keeps the system from moving messages.
void wait_for_all_ranks() {
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  for (Pause pause; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) pause();
}

/// Finalizes MPI, or leaves with `exit_code` if that takes too long: a run whose result is recorded
/// must not keep its job alive. Ranks leave Hydra without MPI_Finalize: there a rank flushes its
/// connections while another, which has to answer, already waits for Hydra. On one node this is
/// rare, and was seen on busy cores. `ranks` are those of the launch. Collective over all of them.
void finalize_mpi(int ranks, bool has_several_nodes, int exit_code) {
  expect_closed_connection();
  flush_output();
  const CallLimit limit(finalize_limit, exit_code);
  if (ranks > 1) {
    wait_for_all_ranks();
    has_left_mpi = leave_hydra(make_progress);
    if (has_left_mpi) return;
    if (has_several_nodes) std::this_thread::sleep_for(pause_before_finalize);
  }
  MPI_Finalize();
}

/// Keeps freed memory mapped. Libraries allocate large temporaries in every call. glibc would
/// return each to the kernel, which would clear its pages again on the next call: a fifth of a step
/// on a host.
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_TOP_PAD, 64 << 20);
}

Kokkos::InitializationSettings settings_of_host(Index threads) {
  return Kokkos::InitializationSettings()
      .set_num_threads(static_cast<int>(threads))
      .set_disable_warnings(true);
}

/// Assigns one device per rank, by the rank on the node. A launcher may show each rank only its own
/// device. If there are more ranks than devices, ranks share devices, and messages go over MPI.
Kokkos::InitializationSettings settings_of_rank(Index threads, int node_rank) {
  Kokkos::InitializationSettings settings = settings_of_host(threads);
  const int devices = device_count();
  if (devices > 0) {
    settings.set_device_id(node_rank % devices);
  } else {
    settings.set_map_device_id_by("mpi_rank");
  }
  return settings;
}

/// The number of cores that this node's ranks may use. Launchers may bind each rank to its own
/// cores, so the masks are united. Collective over `node`.
Index cores_of(MPI_Comm node) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  sched_getaffinity(0, sizeof cores, &cores);  // stays empty if it fails
  MPI_Allreduce(MPI_IN_PLACE, &cores, sizeof cores, MPI_BYTE, MPI_BOR, node);
  return CPU_COUNT(&cores);
}

constexpr auto code_of_a_late_start = static_cast<int>(ExitCode::other);

/// Ends a rank that has waited in vain for the other ranks to start.
void give_up_start() {
  std::cerr << fmt::format(
                   "kzero: rank {} on {}: has waited {:.0f} s for all ranks to start. A node of "
                   "the launch is down or cut off\n",
                   launch_rank().value_or(0), host_name(),
                   start_limit(launch_size().value_or(1)).count())
            << std::flush;
  constexpr std::chrono::seconds time_of_relay{1};  // an abort drops what has not arrived
  std::this_thread::sleep_for(time_of_relay);
  ask_launcher_to_abort(code_of_a_late_start);
  std::this_thread::sleep_for(time_of_relay);
}

/// Sets variables that libraries read when MPI or Kokkos starts. A user's own values are kept.
void set_defaults_of_libraries() {
  // UCX would close an idle connection whose link is down for 18 s, and MPICH would then wait for
  // ever. The heartbeat detects a lost node instead.
  setenv("UCX_TCP_KEEPIDLE", "inf", 0);
  setenv("OMP_PROC_BIND", "false", 0);  // the launcher binds; this also suppresses Kokkos' hint
}

}  // namespace

Session::Session(const SessionOptions& options)
    : start_limit_(std::make_unique<CallLimit>(start_limit(launch_size().value_or(1)),
                                               code_of_a_late_start, give_up_start)) {
  keep_freed_memory();
  set_defaults_of_libraries();
  leave_used_launch();
  int level = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &level);
  KZERO_REQUIRE(level >= MPI_THREAD_SERIALIZED, ExitCode::other,
                "this MPI library grants too little thread support (MPI_THREAD_SERIALIZED is "
                "needed)");
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &size_);
  MPI_Comm node = MPI_COMM_NULL;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &node_rank_);
  MPI_Comm_size(node, &node_size_);
  node_cores_ = cores_of(node);
  MPI_Comm_free(&node);

  threads_ = threads_per_rank(chosen_threads(options), node_size_).count;
  try {
    Kokkos::initialize(settings_of_rank(threads_, node_rank_));
  } catch (const std::exception& problem) {
    fail(ExitCode::other, "no {} device to compute on: {}", Kokkos::DefaultExecutionSpace::name(),
         problem.what());
  }
  require_equal_views();
  move_handlers_to_alternate_stacks();
  if (!options.has_heartbeat) end_start();
}

void Session::end_start() const { start_limit_.reset(); }

Session::~Session() {
  Kokkos::finalize();
  finalize_mpi(size_, node_size_ < size_, code_on_leaving());
}

Index Session::chosen_threads(const SessionOptions& options) const {
  if (!options.choose_threads) return options.threads;
  try {
    return options.choose_threads();
  } catch (const Error& error) {
    finalize_mpi(size_, node_size_ < size_,
                 static_cast<int>(error.code()));  // every rank reaches this
    throw;
  }
}

KokkosAlone::KokkosAlone(Index threads) {
  threads_of_environment();  // OpenMP starts this many, whatever number is requested
  set_defaults_of_libraries();
  Kokkos::initialize(settings_of_host(threads));
}

KokkosAlone::~KokkosAlone() { Kokkos::finalize(); }

int ended(int exit_code) {
  if (has_left_mpi) {
    flush_output();
    ::_exit(exit_code);
  }
  return exit_code;
}

bool Session::any_rank(bool mine) const {
  int value = mine ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  return value != 0;
}

}  // namespace kzero::runtime
