// Where a run spends its time: a tool for Kokkos that profile.py loads. Counts calls and seconds of
// every kernel, fence and region, less what is nested in it, in steps and apart from that outside
// of them, and writes them as JSON to the file KZERO_PROFILE followed by the process number. The
// seconds are processor time of the thread that starts kernels, because other work on the machine
// then disturbs them least. They are a kernel's if a rank has one thread.
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr int warm_up = 3;  // steps that are not counted
constexpr auto step_label = "kzero::engine::step";

struct Entry {
  std::int64_t calls = 0;
  double seconds = 0;
  double fastest = std::numeric_limits<double>::infinity();  // call
};

using Entries = std::map<std::string, Entry>;

struct Open {
  std::string label;
  double begin;
  double nested = 0;
};

struct State {
  Entries in_steps, outside;
  std::vector<Open> open;
  int steps = 0;
};

// Kokkos calls a tool from the thread that starts kernels; kzero's others start none in a step.
State& state() {
  static State state;
  return state;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void begin(std::string label) { state().open.push_back({std::move(label), processor_seconds()}); }

void end() {
  State& s = state();
  const Open done = std::move(s.open.back());
  s.open.pop_back();
  const double seconds = processor_seconds() - done.begin;
  const bool is_step = done.label == step_label;
  const bool in_step = is_step || (!s.open.empty() && s.open.front().label == step_label);
  s.steps += is_step ? 1 : 0;
  if (!s.open.empty()) s.open.back().nested += seconds;
  if (in_step && s.steps < warm_up + (is_step ? 1 : 0)) return;
  Entry& entry = (in_step ? s.in_steps : s.outside)[done.label];
  ++entry.calls;
  entry.seconds += seconds - done.nested;
  entry.fastest = std::min(entry.fastest, seconds);
}

void write(std::ostream& out, const char* name, const Entries& entries) {
  out << ", \"" << name << "\": {";
  const char* comma = "";
  for (const auto& [label, entry] : entries) {
    out << comma << "\n\"" << label << "\": {\"calls\": " << entry.calls
        << ", \"seconds\": " << entry.seconds << ", \"fastest\": " << entry.fastest << '}';
    comma = ",";
  }
  out << '}';
}

}  // namespace

extern "C" {

void kokkosp_finalize_library() {
  const State& s = state();
  std::ofstream out(std::string(std::getenv("KZERO_PROFILE")) + "." + std::to_string(getpid()));
  out << "{\"steps\": " << s.steps - warm_up;
  write(out, "in_steps", s.in_steps);
  write(out, "outside", s.outside);
  out << "}\n";
}

void kokkosp_begin_parallel_for(const char* label, std::uint32_t, std::uint64_t*) { begin(label); }
void kokkosp_end_parallel_for(std::uint64_t) { end(); }
void kokkosp_begin_parallel_reduce(const char* label, std::uint32_t, std::uint64_t*) {
  begin(label);
}
void kokkosp_end_parallel_reduce(std::uint64_t) { end(); }
void kokkosp_begin_fence(const char* label, std::uint32_t, std::uint64_t*) {
  begin("fence " + std::string(label));
}
void kokkosp_end_fence(std::uint64_t) { end(); }
void kokkosp_push_profile_region(const char* label) { begin(label); }
void kokkosp_pop_profile_region() { end(); }

}  // extern "C"
