#include "runtime/threads.hpp"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include "base/error.hpp"

namespace kzero::runtime {

namespace {

constexpr const char* variable = "OMP_NUM_THREADS";

/// The largest thread count accepted. Machines limit the number of threads, and OpenMP ends the
/// process if it cannot start them.
Index max_threads() { return std::max<Index>(1024, usable_cores()); }

}  // namespace

Index usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

std::optional<Index> threads_of_environment() {
  const char* value = std::getenv(variable);
  if (value == nullptr || *value == '\0') return std::nullopt;
  const std::string_view text = value;
  // A list such as "4,2" has one number per level of nesting; kzero uses only one level.
  const std::string_view first = text.substr(0, text.find(','));
  Index count = 0;
  const auto [rest, problem] = std::from_chars(first.data(), first.data() + first.size(), count);
  KZERO_REQUIRE(problem == std::errc{} && rest == first.data() + first.size() && count >= 1 &&
                    count <= max_threads(),
                ExitCode::usage,
                "{} must be a number of threads from 1 to {}, found '{}'; correct or unset it",
                variable, max_threads(), text);
  return count;
}

void require_startable(Index threads) {
  KZERO_REQUIRE(threads <= max_threads(), ExitCode::usage,
                "run.threads must be at most {} on this machine, found {}", max_threads(), threads);
}

Threads threads_per_rank(Index asked, Index node_ranks) {
  if (asked > 0) return {asked, "as set"};
  if (const auto threads = threads_of_environment())
    return {*threads, fmt::format("from {}", variable)};
  return {std::max<Index>(1, usable_cores() / node_ranks), "this node's cores over its ranks"};
}

}  // namespace kzero::runtime
