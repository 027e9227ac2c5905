#include "run/profile.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "base/bytes.hpp"
#include "run/trace_file.hpp"
#include "runtime/host_name.hpp"

namespace kzero::run {

namespace {

/// Returns, as text, what the root must know of a rank in addition to its spans.
std::string packed(const Timeline& line, const grid::ClockOffset& offset) {
  std::ostringstream out;
  out << runtime::host_name() << '\n'
      << offset.ahead << ' ' << offset.accuracy << ' ' << line.begin << ' ' << line.end << ' '
      << line.lost << '\n';
  for (const std::string& lane : line.lanes) out << lane << '\n';
  return out.str();
}

TracedRank unpacked(const std::string& text) {
  TracedRank rank;
  std::istringstream in(text);
  std::getline(in, rank.host);
  std::int64_t ahead = 0;
  in >> ahead >> rank.clock_accuracy >> rank.begin >> rank.end >> rank.lost >> std::ws;
  rank.ahead = ahead;
  for (std::string lane; std::getline(in, lane);) rank.lanes.push_back(lane);
  return rank;
}

std::string steps_text(Index first, Index last) {
  return first == last ? fmt::format("step {}", first) : fmt::format("steps {} to {}", first, last);
}

}  // namespace

Profile::Profile(const deck::Run& run, const grid::Group& world, std::span<SpanRecord> room,
                 metrics::Console& console)
    : run_(run),
      steps_(deck::profiled_steps(run).value()),
      world_(world),
      room_(room),
      console_(console) {}

std::string Profile::announcement(Index first_step) const {
  const std::string what = steps_text(steps_.first, steps_.last);
  if (first_step > steps_.last)
    return fmt::format("run.profile: {} were done before this job: no time line", what);
  return fmt::format("time line   of {} in {}, {} a rank", what, run_.profile,
                     format_bytes(static_cast<Index>(room_.size_bytes())));
}

void Profile::before_step(Index step) {
  if (kernels_ && step > steps_.last) write(step_);
  step_ = step;
  if (kernels_ || step < steps_.first || step > steps_.last) return;
  first_ = step;
  offset_ = grid::measure_offset(world_, &timeline_clock, grid::is_on_root_node(world_));
  std::ranges::fill(room_, SpanRecord{});  // touches the pages before timing starts
  world_.barrier();
  kernels_.emplace();
  start_timeline(room_);
}

void Profile::finish() {
  if (kernels_) write(step_);
}

void Profile::write(Index last_step) {
  kernels_.reset();
  const Timeline line = stop_timeline();
  std::vector<TracedRank> ranks;
  for (const std::string& text : world_.gather(packed(line, offset_)))
    ranks.push_back(unpacked(text));
  std::optional<TraceFile> file;
  std::string problem;
  const auto attempt = [&](const auto& action) {
    if (!problem.empty()) return;
    try {
      action();
    } catch (const Error& error) {
      problem = error.what();
    }
  };
  if (world_.is_root())
    attempt([&] { file.emplace(run_.profile, steps_text(first_, last_step), ranks); });
  grid::hand_to_root(world_, std::as_bytes(line.spans),
                     [&](int rank, std::span<const std::byte> bytes) {
                       attempt([&] { file->append(rank, bytes); });
                     });
  if (!world_.is_root()) return;
  attempt([&] { file->finish(); });
  if (!problem.empty()) {
    console_.note("warning     run.profile: " + problem);
    return;
  }
  console_.note(file->summary());
}

}  // namespace kzero::run
