// In place of src/kernels/team.hpp: teams whose threads and lanes are fibers (fibers.hpp), to
// find what a barrier is missing for. Threads wait for each other where Kokkos' CUDA back end makes
// them wait (Kokkos 4.7, Kokkos_Cuda_Team.hpp): all of a team at team_barrier and in reductions
// over the team, a thread's lanes at the end of ThreadVectorRange loops, in reductions over lanes
// and after single. Which of a loop's indices a thread takes changes from loop to loop, as Kokkos
// does not say which; a reduction still joins the parts of a loop in one order, as it does
// on a device. Two teams run at once and do not wait for each other.
#pragma once

#include <algorithm>
#include <source_location>
#include <type_traits>
#include <vector>

#include "fibers.hpp"
#include "omission.hpp"
#include "tensor/view.hpp"

// Threads of a team and lanes of a thread; teams that have one lane have as many threads as both.
#ifndef KZERO_TEAM_THREADS
#define KZERO_TEAM_THREADS 2
#endif
#ifndef KZERO_TEAM_LANES
#define KZERO_TEAM_LANES 2
#endif

namespace kzero::kernels {

class Policy {
 public:
  Policy(const tensor::Execution& exec, int league_size, Kokkos::AUTO_t)
      : Policy(exec, league_size, KZERO_TEAM_THREADS * KZERO_TEAM_LANES) {}
  Policy(const tensor::Execution&, int league_size, int team_size, int vector_length = 1)
      : teams(league_size), threads(team_size), lanes(vector_length) {}

  Policy& set_scratch_size(int, const Kokkos::Impl::PerTeamValue& bytes) {
    scratch = bytes.value;
    return *this;
  }

  int teams, threads, lanes;
  std::size_t scratch = 0;
};

using TablePolicy = Policy;

template <int, int>
using BoundedPolicy = Policy;

constexpr int team_size(int on_device) {
  return on_device < KZERO_TEAM_THREADS ? on_device : KZERO_TEAM_THREADS;
}

constexpr int vector_length(int on_device) {
  return on_device < KZERO_TEAM_LANES ? on_device : KZERO_TEAM_LANES;
}

/// Who takes part in a loop: the threads, each with all of its lanes; all lanes of all threads; or
/// the lanes of one thread.
enum class Members { threads, all, lanes };

/// State that the members of a team share, and those of the teams that follow in their place.
struct TeamState {
  races::Meeting team;
  std::vector<races::Meeting> threads;  // of each thread's lanes
  std::vector<const void*> values;      // of each part of a loop in a reduction
  std::vector<std::byte> scratch;

  explicit TeamState(const Policy& policy)
      : threads(policy.threads), values(policy.threads * policy.lanes), scratch(policy.scratch) {
    team.set_size(policy.threads * policy.lanes);
    for (races::Meeting& lanes : threads) lanes.set_size(policy.lanes);
  }
};

/// A member of a team: a lane of a thread.
class Team {
 public:
  Team(const Policy& policy, TeamState& state, int league_rank, int member)
      : policy_(policy),
        state_(state),
        league_rank_(league_rank),
        thread_(member / policy.lanes),
        lane_(member % policy.lanes),
        scratch_(state.scratch.data(), state.scratch.size()) {}

  int league_rank() const { return league_rank_; }
  int team_rank() const { return thread_; }
  int team_size() const { return policy_.threads; }
  const tensor::Execution::scratch_memory_space& team_scratch(int) const { return scratch_; }

  void team_barrier(const std::source_location& at = std::source_location::current()) const {
    if (!races::omitted(at)) state_.team.wait("team_barrier");
  }

  void meet_lanes(const char* reason) const { state_.threads[thread_].wait(reason); }
  bool is_first() const { return thread_ == 0 && lane_ == 0; }
  bool is_first_lane() const { return lane_ == 0; }

  /// The number of members of a loop, and this one's part of it, which is another in every loop.
  int size(Members who) const {
    return who == Members::lanes ? policy_.lanes
                                 : policy_.threads * (who == Members::all ? policy_.lanes : 1);
  }
  int next_part(Members who) const {
    if (who == Members::lanes) return (lane_ + lane_loops_++) % policy_.lanes;
    const int own = who == Members::all ? thread_ * policy_.lanes + lane_ : thread_;
    return (own + team_loops_++) % size(who);
  }

  /// Joins the values of a loop's parts in their order, on each of the members.
  template <class Value, class Join>
  void reduce(Members who, int part, Value& value, const Join& join) const {
    const int first = who == Members::lanes     ? thread_ * policy_.lanes
                      : who == Members::threads ? lane_
                                                : 0;
    const int step = who == Members::threads ? policy_.lanes : 1;
    races::Meeting& meeting = who == Members::lanes ? state_.threads[thread_] : state_.team;
    state_.values[first + part * step] = &value;
    meeting.wait("reduction");
    const auto value_of = [&](int i) -> const Value& {
      return *static_cast<const Value*>(state_.values[first + i * step]);
    };
    Value joined = value_of(0);
    for (int i = 1; i < size(who); ++i) join(joined, value_of(i));
    meeting.wait("reduction");
    value = joined;
  }

 private:
  const Policy& policy_;
  TeamState& state_;
  int league_rank_, thread_, lane_;
  mutable int team_loops_ = 0, lane_loops_ = 0;
  tensor::Execution::scratch_memory_space scratch_;
};

/// Calls work(team, place) of every member of every team; teams run in two places at once.
template <class Work>
void run_teams(const Policy& policy, const Work& work) {
  struct Run {
    const Policy& policy;
    const Work& work;
    TeamState states[2];
  } run{policy, work, {TeamState(policy), TeamState(policy)}};
  const auto part = [](void* argument, int i) {
    Run& r = *static_cast<Run*>(argument);
    const int place = i % 2, member = i / 2;
    TeamState& state = r.states[place];
    for (int rank = place; rank < r.policy.teams; rank += 2) {
      if (member == 0) std::fill(state.scratch.begin(), state.scratch.end(), std::byte{0xFF});
      state.team.wait("begin");
      r.work(Team(r.policy, state, rank, member), place);
      state.team.wait("end");
    }
  };
  races::run_fibers(2 * policy.threads * policy.lanes, part, &run);
}

template <class I>
struct Loop {
  const Team& team;
  Members who;
  I begin, end;

  /// Calls f(i) for the indices of this member, and returns which part of the loop that was.
  template <class F>
  int run(const F& f) const {
    const int part = team.next_part(who);
    const auto step = static_cast<I>(team.size(who));
    for (I i = begin + static_cast<I>(part); i < end; i += step) f(i);
    return part;
  }
};

struct Single {
  const Team& team;
  bool is_chosen;
};

}  // namespace kzero::kernels

// Kernels call these by their full names, with the team as first argument.
namespace Kokkos {

template <class I>
auto TeamThreadRange(const kzero::kernels::Team& team, I count) {
  return kzero::kernels::Loop<I>{team, kzero::kernels::Members::threads, 0, count};
}
template <class I, class J>
auto TeamThreadRange(const kzero::kernels::Team& team, I begin, J end) {
  return kzero::kernels::Loop<std::common_type_t<I, J>>{team, kzero::kernels::Members::threads,
                                                        begin, end};
}
template <class I>
auto TeamVectorRange(const kzero::kernels::Team& team, I count) {
  return kzero::kernels::Loop<I>{team, kzero::kernels::Members::all, 0, count};
}
template <class I>
auto ThreadVectorRange(const kzero::kernels::Team& team, I count) {
  return kzero::kernels::Loop<I>{team, kzero::kernels::Members::lanes, 0, count};
}

template <class I, class F>
void parallel_for(const kzero::kernels::Loop<I>& loop, const F& f) {
  loop.run(f);
  if (loop.who == kzero::kernels::Members::lanes) loop.team.meet_lanes("end of a loop");
}

template <class I, class F, class Value>
void parallel_reduce(const kzero::kernels::Loop<I>& loop, const F& f, Value& total) {
  Value own{};
  const int part = loop.run([&](I i) { f(i, own); });
  loop.team.reduce(loop.who, part, own, [](Value& to, const Value& from) { to += from; });
  total = own;
}

template <class I, class F, class Value>
void parallel_reduce(const kzero::kernels::Loop<I>& loop, const F& f, const Max<Value>& result) {
  Value own;
  result.init(own);
  const int part = loop.run([&](I i) { f(i, own); });
  loop.team.reduce(loop.who, part, own,
                   [&](Value& to, const Value& from) { result.join(to, from); });
  result.reference() = own;
}

inline auto PerTeam(const kzero::kernels::Team& team,
                    const std::source_location& at = std::source_location::current()) {
  return kzero::kernels::Single{team, team.is_first() || kzero::races::omitted(at)};
}
inline auto PerThread(const kzero::kernels::Team& team,
                      const std::source_location& at = std::source_location::current()) {
  return kzero::kernels::Single{team, team.is_first_lane() || kzero::races::omitted(at)};
}

template <class F>
void single(const kzero::kernels::Single& who, const F& f) {
  if (who.is_chosen) f();
  who.team.meet_lanes("end of single");
}

template <class F>
void parallel_for(const char*, const kzero::kernels::Policy& policy, const F& f) {
  kzero::kernels::run_teams(policy, [&](const kzero::kernels::Team& team, int) { f(team); });
}

/// Each thread of a place has a sum of its own, which its lanes share.
template <class F, class Value>
void parallel_reduce(const char*, const kzero::kernels::Policy& policy, const F& f, Value& result) {
  std::vector<Value> sums(2 * policy.threads);
  kzero::kernels::run_teams(policy, [&](const kzero::kernels::Team& team, int place) {
    f(team, sums[place * policy.threads + team.team_rank()]);
  });
  result = Value{};
  for (const Value& sum : sums) result += sum;
}

/// With the result in a view of one value, as kernels leave what the host reads later.
template <class F, class T, class... Properties>
void parallel_reduce(const char* label, const kzero::kernels::Policy& policy, const F& f,
                     const View<T, Properties...>& result) {
  T value;
  parallel_reduce(label, policy, f, value);
  result() = value;
}

}  // namespace Kokkos
