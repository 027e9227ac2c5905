#include "grid/group.hpp"

#include <mpi.h>

#include <numeric>
#include <utility>

#include "base/pause.hpp"
#include "base/timeline.hpp"
#include "base/wait.hpp"
#include "base/waited.hpp"

namespace kzero::grid {

namespace {

/// A control message: registers a wait for the watchdog, counts waiting time and opens a span.
class ControlWait {
 public:
  ControlWait(const char* what, const std::string& group)
      : waiting_({what, group}),
        span_(SpanKind::wait, [&] { return SpanName("{} of group {}", what, group); }) {}

 private:
  Waiting waiting_;
  CountedWait counted_;
  TimelineSpan span_;
};

/// Ends a collective that `begin` begins. MPI's own blocking calls take a core while they wait.
template <class Begin>
void complete(const Begin& begin) {
  MPI_Request request = MPI_REQUEST_NULL;
  begin(&request);
  int done = 0;
  MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  for (Pause pause; done == 0; MPI_Test(&request, &done, MPI_STATUS_IGNORE)) pause();
}

std::string node_name() {
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  return {name, static_cast<std::size_t>(length)};
}

}  // namespace

Group::Group(MpiHandle comm, std::string name) : comm_(comm), name_(std::move(name)) {
  MPI_Comm_rank(comm_, &rank_);
  MPI_Comm_size(comm_, &size_);
  MPI_Group members = MPI_GROUP_NULL, launch = MPI_GROUP_NULL;
  MPI_Comm_group(comm_, &members);
  MPI_Comm_group(MPI_COMM_WORLD, &launch);
  node_of_.resize(size_);
  shape_ = {1, size_};
  std::vector<int> ranks(size_);
  std::iota(ranks.begin(), ranks.end(), 0);
  launch_ranks_.resize(size_);
  MPI_Group_translate_ranks(members, size_, ranks.data(), launch, launch_ranks_.data());
  MPI_Group_free(&members);
  MPI_Group_free(&launch);
}

Group::~Group() {
  MPI_Comm comm = comm_;
  if (comm != MPI_COMM_NULL) MPI_Comm_free(&comm);
}

Group::Group(Group&& other) noexcept
    : comm_(std::exchange(other.comm_, MPI_COMM_NULL)),
      name_(std::move(other.name_)),
      rank_(other.rank_),
      size_(other.size_),
      launch_ranks_(std::move(other.launch_ranks_)),
      node_of_(std::move(other.node_of_)),
      shape_(other.shape_) {}

Group Group::part(Index color, std::string name, std::optional<Index> key) const {
  MPI_Comm part = MPI_COMM_NULL;
  MPI_Comm_split(comm_, static_cast<int>(color), static_cast<int>(key.value_or(rank_)), &part);
  return {part, std::move(name)};
}

void Group::barrier() const {
  const ControlWait waiting("barrier", name_);
  complete([&](MPI_Request* request) { MPI_Ibarrier(comm_, request); });
}

std::vector<double> Group::all_gather(double mine) const {
  return all_gather(std::vector<double>{mine});
}

std::vector<double> Group::all_gather(const std::vector<double>& mine) const {
  const ControlWait waiting("agreement", name_);
  const auto count = static_cast<int>(mine.size());
  std::vector<double> all(mine.size() * static_cast<std::size_t>(size_));
  complete([&](MPI_Request* request) {
    MPI_Iallgather(mine.data(), count, MPI_DOUBLE, all.data(), count, MPI_DOUBLE, comm_, request);
  });
  return all;
}

void Group::sum(std::span<std::uint64_t> numbers) const {
  const ControlWait waiting("agreement", name_);
  complete([&](MPI_Request* request) {
    MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), static_cast<int>(numbers.size()), MPI_UINT64_T,
                   MPI_SUM, comm_, request);
  });
}

double Group::sum(double mine) const {
  double total = 0;
  for (const double value : all_gather(mine)) total += value;
  return total;
}

Index Group::max(Index mine) const {
  const ControlWait waiting("agreement", name_);
  complete([&](MPI_Request* request) {
    MPI_Iallreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_MAX, comm_, request);
  });
  return mine;
}

Index Group::min(Index mine) const {
  const ControlWait waiting("agreement", name_);
  complete([&](MPI_Request* request) {
    MPI_Iallreduce(MPI_IN_PLACE, &mine, 1, MPI_INT64_T, MPI_MIN, comm_, request);
  });
  return mine;
}

std::vector<std::string> Group::gather(const std::string& mine) const {
  const ControlWait waiting("agreement", name_);
  const int length = static_cast<int>(mine.size());
  std::vector<int> lengths(size_);
  complete([&](MPI_Request* request) {
    MPI_Igather(&length, 1, MPI_INT, lengths.data(), 1, MPI_INT, 0, comm_, request);
  });
  std::vector<int> begins(size_);
  int total = 0;
  for (int r = 0; r < size_ && is_root(); ++r) {
    begins[r] = total;
    total += lengths[r];
  }
  std::string joined(total, '\0');
  complete([&](MPI_Request* request) {
    MPI_Igatherv(mine.data(), length, MPI_CHAR, joined.data(), lengths.data(), begins.data(),
                 MPI_CHAR, 0, comm_, request);
  });
  std::vector<std::string> all;
  for (int r = 0; r < size_ && is_root(); ++r) all.push_back(joined.substr(begins[r], lengths[r]));
  return all;
}

std::string Group::broadcast(const std::string& text) const {
  const ControlWait waiting("agreement", name_);
  return broadcast(text, 0);
}

/// Returns the text of one rank on every rank.
std::string Group::broadcast(const std::string& text, int from) const {
  Index length = static_cast<Index>(text.size());
  complete(
      [&](MPI_Request* request) { MPI_Ibcast(&length, 1, MPI_INT64_T, from, comm_, request); });
  std::string copy = rank_ == from ? text : std::string(length, '\0');
  complete([&](MPI_Request* request) {
    MPI_Ibcast(copy.data(), static_cast<int>(length), MPI_CHAR, from, comm_, request);
  });
  return copy;
}

/// Names a failing rank and its node if the ranks are on several nodes and some did not fail: a
/// full disk or lack of memory is then a problem of that node.
std::string Group::place_of(int failing, bool i_failed) const {
  const std::string node = node_name(), failed = broadcast(node, failing);
  const bool is_shared = min(i_failed ? 1 : 0) == 1, has_others = max(node == failed ? 0 : 1) == 1;
  if (is_shared || !has_others) return {};
  return " (rank " + std::to_string(launch_rank(failing)) + " on " + failed + ")";
}

void Group::agree(const std::string& problem, int exit_code) const {
  const ControlWait waiting("agreement", name_);
  const auto lowest = static_cast<int>(min(problem.empty() ? size_ : rank_));
  if (lowest == size_) return;
  const std::string text = broadcast(problem, lowest);
  Index code = exit_code;
  complete(
      [&](MPI_Request* request) { MPI_Ibcast(&code, 1, MPI_INT64_T, lowest, comm_, request); });
  const std::string place = place_of(lowest, !problem.empty());
  const bool is_of_a_node = code != static_cast<Index>(ExitCode::usage);
  throw AgreedError(static_cast<ExitCode>(code), text + (is_of_a_node ? place : ""));
}

}  // namespace kzero::grid
