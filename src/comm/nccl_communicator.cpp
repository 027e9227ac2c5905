#include "comm/nccl_communicator.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "base/error.hpp"
#include "comm/shared_device.hpp"
#include "runtime/cuda_stream.hpp"

#ifdef KZERO_HIP  // RCCL has NCCL's functions under the same names
#include <rccl/rccl.h>
#else
#include <nccl.h>
#endif

namespace kzero::comm {

namespace {

constexpr std::chrono::milliseconds time_between_looks{50};

void check(ncclResult_t status, const char* what, const std::string& group) {
  KZERO_REQUIRE(status == ncclSuccess, ExitCode::other, "{} over group '{}' failed: {}", what,
                group, ncclGetErrorString(status));
}

ncclDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::bf16:
      return ncclBfloat16;
    case Dtype::fp16:
      return ncclFloat16;
    default:
      return ncclFloat32;
  }
}

/// Refuses ranks that share a GPU. NCCL would also refuse, but later and without naming the ranks.
/// Collective over the group.
void require_own_devices(const grid::Group& group) {
  const std::string problem = shared_device(group);
  KZERO_REQUIRE(problem.empty(), ExitCode::usage,
                "run.communicator = \"nccl\" needs a GPU for each rank; of group '{}' {}. Start "
                "fewer ranks a node, or set run.communicator = \"mpi\"",
                group.name(), problem);
}

#ifdef KZERO_HIP
/// RCCL needs no setting: all lanes share a stream.
void keep_launch_order() {}
#else
/// Makes operations of several communicators on one device begin in the order of the host's calls,
/// which is the same on all ranks. In different orders they could wait for one another forever
/// (NCCL user guide, "Using multiple NCCL communicators concurrently"). Call it before the first
/// communicator is made. A setting by the user is kept.
void keep_launch_order() {
  constexpr int first_version = 22600;
  int version = 0;
  const ncclResult_t status = ncclGetVersion(&version);
  KZERO_REQUIRE(status == ncclSuccess && version >= first_version, ExitCode::other,
                "run.communicator = \"nccl\" needs NCCL 2.26 or newer, which can keep the order of "
                "operations on several communicators; found {}.{}.{}; set run.communicator = "
                "\"mpi\" or install a newer one",
                version / 10000, version / 100 % 100, version % 100);
  setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);
}
#endif

/// Returns an id for a new communicator, made by the root and sent to every rank. Collective over
/// the group.
ncclUniqueId shared_id(const grid::Group& group) {
  ncclUniqueId id{};
  std::string bytes;
  if (group.is_root()) {
    check(ncclGetUniqueId(&id), "ncclGetUniqueId", group.name());
    bytes.assign(id.internal, sizeof id.internal);
  }
  bytes = group.broadcast(bytes);
  KZERO_EXPECT(bytes.size() == sizeof id.internal);
  std::memcpy(id.internal, bytes.data(), bytes.size());
  return id;
}

/// Joins a new communicator of the group. Collective over the group.
ncclComm_t join(const grid::Group& group) {
  const ncclUniqueId id = shared_id(group);
  const Waiting waiting({"start of NCCL", group.name()});
  ncclComm_t joined = nullptr;
  check(ncclCommInitRank(&joined, group.size(), id, group.rank()), "ncclCommInitRank",
        group.name());
  return joined;
}

/// The most peers whose messages begin together: NCCL accepts 2048 operations per group, and each
/// peer needs two.
constexpr int max_peers = 1024;

/// Messages that begin together. Closes the group even if an exception leaves it. NCCL discards a
/// group after a failed call, but while the group is open it defers everything, including
/// ncclCommDestroy.
class MessageGroup {
 public:
  explicit MessageGroup(const std::string& group) : group_(group) {
    check(ncclGroupStart(), "ncclGroupStart", group_);
  }
  ~MessageGroup() {
    if (is_open_) ncclGroupEnd();
  }
  MessageGroup(const MessageGroup&) = delete;
  MessageGroup& operator=(const MessageGroup&) = delete;

  void launch() {
    is_open_ = false;
    check(ncclGroupEnd(), "ncclGroupEnd", group_);
  }

 private:
  const std::string& group_;
  bool is_open_ = true;
};

/// Returns whether the spans are equal in size and contiguous, as ncclAllGather requires.
bool is_one_array(const std::vector<Span>& places) {
  for (std::size_t r = 1; r < places.size(); ++r) {
    if (places[r].elements != places[0].elements) return false;
    if (static_cast<std::byte*>(places[r].data) !=
        static_cast<std::byte*>(places[r - 1].data) + places[0].bytes())
      return false;
  }
  return true;
}

}  // namespace

NcclCommunicator::NcclCommunicator(const grid::Group& group, Traffic& traffic)
    : Communicator(group, traffic) {
  if (size() == 1) return;
  require_own_devices(group);
  keep_launch_order();
  for (Lane& lane : lanes_) lane.handle.reset(join(group));
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

NcclCommunicator::~NcclCommunicator() {
  watcher_ = {};  // stops and joins
  const bool is_sound = !failed_ && std::uncaught_exceptions() == exceptions_;
  const auto is_idle = [](const Lane& lane) {
    return std::ranges::all_of(lane.flights, &has_arrived);
  };
  if (size() == 1 || !is_sound || !std::ranges::all_of(lanes_, is_idle)) return;  // lanes abort
  const Waiting waiting({"end of NCCL", group_.name()});
  for (Lane& lane : lanes_) ncclCommDestroy(lane.handle.release());
}

#ifdef KZERO_HIP
/// Returns the stream that all communicators of the process share, in which their operations run
/// one after the other. With a stream each they can wait for one another forever. RCCL's setting
/// against that, NCCL_LAUNCH_ORDER_IMPLICIT, has not helped with three communicators
/// (ROCm/rccl#2191) and has crashed with two (ROCm/aorta#512).
Execution NcclCommunicator::lane_stream() {
  static std::optional<Execution> shared;
  if (!shared) {
    shared = runtime::make_stream();
    Kokkos::push_finalize_hook([] { shared.reset(); });
  }
  return *shared;
}
#else
Execution NcclCommunicator::lane_stream() { return runtime::make_stream(); }
#endif

void NcclCommunicator::Abort::operator()(ncclComm* handle) const { ncclCommAbort(handle); }

/// Treats a device error as "not arrived", because destructors and the watching thread call this.
bool NcclCommunicator::has_arrived(const Flight& flight) noexcept {
  try {
    return flight.arrived.reached();
  } catch (const Error&) {
    return false;
  }
}

template <class F>
Request NcclCommunicator::fly(const Execution& stream, const Channel& channel, const SpanWork& work,
                              const F& enqueue) {
  const TimelineSpan span(
      SpanKind::message, [&] { return message_name(channel); }, work);
  const Request number = lane_of(channel.operation);
  Lane& lane = lanes_[number];
  lane.ready.order(stream, lane.stream);
  enqueue(lane);
  std::unique_lock lock(mutex_);
  Flight flight{++begun_ * lanes + number, {}, nullptr};
  if (!spare_events_.empty()) {
    flight.arrived = std::move(spare_events_.back());
    spare_events_.pop_back();
  }
  flight.arrived.record(lane.stream);
  flight.noted = std::make_unique<Waiting>(Wait{describe(channel), channel.group});
  lane.flights.push_back(std::move(flight));
  const Request request = lane.flights.back().request;
  lock.unlock();
  if (span.is_open()) lane.stream.fence("kzero::comm::message_arrived");  // to time the message
  return request;
}

void NcclCommunicator::complete(const Execution& stream, Request request) {
  if (request == 0) return;
  const std::lock_guard lock(mutex_);
  const auto& flights = lanes_[request % lanes].flights;
  const auto flight = std::ranges::find(flights, request, &Flight::request);
  if (flight == flights.end()) return;  // it has arrived
  measured(stream, [&] { flight->arrived.wait(stream); });
}

void NcclCommunicator::wait_for(const Execution& stream, const runtime::Event& point) {
  measured(stream, [&] { point.wait(stream); });
}

/// Steps compute on the default stream. A wait on another stream does not by itself delay a step.
template <class F>
void NcclCommunicator::measured(const Execution& stream, const F& wait) {
  const bool holds_up = size() > 1 && traffic_.in_step() &&
                        runtime::stream_of(stream) == runtime::stream_of(Execution());
  if (holds_up) standstill_.begin(stream);
  wait();
  if (holds_up) standstill_.end(stream);
}

Request NcclCommunicator::begin(const Execution& stream, std::vector<ConstSpan> send,
                                std::vector<Span> receive, const Channel& channel) {
  SpanWork work;
  for (int r = 0; r < size(); ++r) {
    if (r == rank()) continue;
    work.elements += send[r].elements;
    work.bytes += send[r].bytes();
  }
  return fly(stream, channel, work, [&](const Lane& lane) {
    const auto lane_stream = runtime::stream_of(lane.stream);
    for (int first = 1; first < size(); first += max_peers) {
      MessageGroup messages(group_.name());
      for (int step = first; step < std::min(first + max_peers, size()); ++step) {
        const int to = (rank() + step) % size(), from = (rank() - step + size()) % size();
        const auto& [out, sent, out_type] = send[to];
        const auto& [in, received, in_type] = receive[from];
        if (sent > 0) {
          check(ncclSend(out, static_cast<std::size_t>(sent), type_of(out_type), to,
                         lane.handle.get(), lane_stream),
                "ncclSend", group_.name());
        }
        if (received > 0) {
          check(ncclRecv(in, static_cast<std::size_t>(received), type_of(in_type), from,
                         lane.handle.get(), lane_stream),
                "ncclRecv", group_.name());
        }
      }
      messages.launch();
    }
  });
}

// NCCL's ring or tree crosses node boundaries less often than pairwise messages do, and gives the
// same bits.
Request NcclCommunicator::gather(const Execution& stream, ConstSpan mine, std::vector<Span> receive,
                                 const Channel& channel) {
  if (!is_one_array(receive))
    return Communicator::gather(stream, mine, std::move(receive), channel);
  const SpanWork work{.elements = mine.elements * (size() - 1),
                      .bytes = mine.bytes() * (size() - 1)};
  return fly(stream, channel, work, [&](const Lane& lane) {
    check(ncclAllGather(mine.data, receive[0].data, static_cast<std::size_t>(mine.elements),
                        type_of(mine.dtype), lane.handle.get(), runtime::stream_of(lane.stream)),
          "ncclAllGather", group_.name());
  });
}

Request NcclCommunicator::library_sum(const Execution& stream, ConstSpan all, Span own,
                                      const Channel& channel) {
  const SpanWork work{.elements = own.elements * (size() - 1), .bytes = own.bytes() * (size() - 1)};
  return fly(stream, channel, work, [&](const Lane& lane) {
    check(ncclReduceScatter(all.data, own.data, static_cast<std::size_t>(own.elements),
                            type_of(own.dtype), ncclSum, lane.handle.get(),
                            runtime::stream_of(lane.stream)),
          "ncclReduceScatter", group_.name());
  });
}

/// Removes the flights that have arrived, so that the watchdog sees only those that have not.
/// Reports errors that NCCL finds asynchronously.
void NcclCommunicator::watch(const std::stop_token& stop) {
  try {
    runtime::use_device();
  } catch (const Error& error) {
    return fail(Wait{"no collective", group_.name()}, error.what());
  }
  std::mutex sleep;
  std::condition_variable_any woken;
  while (!stop.stop_requested() && !failed_) {
    for (Lane& lane : lanes_) look_at(lane);
    std::unique_lock lock(sleep);
    woken.wait_for(lock, stop, time_between_looks, [] { return false; });
  }
}

void NcclCommunicator::look_at(Lane& lane) {
  const std::lock_guard lock(mutex_);
  while (!lane.flights.empty() && has_arrived(lane.flights.front())) {
    spare_events_.push_back(std::move(lane.flights.front().arrived));
    lane.flights.pop_front();
  }
  ncclResult_t status = ncclSuccess;
  if (ncclCommGetAsyncError(lane.handle.get(), &status) == ncclSuccess &&
      (status == ncclSuccess || status == ncclInProgress))
    return;
  Wait wait = lane.flights.empty() ? Wait{"no collective", group_.name()}
                                   : lane.flights.front().noted->wait();
  fail(std::move(wait), std::string("NCCL: ") + ncclGetErrorString(status));
}

void NcclCommunicator::fail(Wait wait, const std::string& problem) {
  wait.problem = problem;
  failed_ = true;
  note_failure(std::move(wait));
}

}  // namespace kzero::comm
