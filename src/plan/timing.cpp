#include "plan/timing.hpp"

#include <chrono>
#include <ctime>
#include <thread>

namespace kzero::plan {

namespace {

/// Returns the share of a core that the least lucky of some threads has for a while.
double min_share(Index threads) {
  constexpr double while_seconds = 0.02;
  std::vector<double> shares(static_cast<std::size_t>(threads));
  {
    std::vector<std::jthread> all;
    all.reserve(shares.size());
    for (double& share : shares) {
      all.emplace_back([&share] {
        const double begin = now(Clock::wall), core = now(Clock::core);
        while (now(Clock::wall) - begin < while_seconds) {
        }
        share = (now(Clock::core) - core) / (now(Clock::wall) - begin);
      });
    }
  }
  return std::ranges::min(shares);
}

}  // namespace

double now(Clock clock) {
  if (clock == Clock::wall)
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

bool is_busy(Index threads) {
  constexpr int attempts = 3;
  constexpr double idle_share = 0.9;
  for (int i = 0; i < attempts; ++i)
    if (min_share(threads) >= idle_share) return false;
  return true;
}

}  // namespace kzero::plan
