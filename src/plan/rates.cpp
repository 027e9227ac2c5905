#include "plan/rates.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "comm/backends.hpp"
#include "plan/block_rate.hpp"
#include "tensor/view.hpp"

namespace kzero::plan {

namespace {

using comm::chunk_within_node;

constexpr Index measured_bytes = Index{128} << 20;  // exceeds the caches
constexpr int repeats = 3;

/// Returns the seconds of the fastest of several runs. The first run is ignored because of page
/// faults.
template <class Run>
double fastest(const Run& run) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i <= repeats; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    run();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - begin;
    if (i > 0) best = std::min(best, taken.count());
  }
  return best;
}

std::vector<std::byte> buffer(Index bytes) { return std::vector<std::byte>(bytes); }

/// Returns the bytes per second, read plus written, of a copy on all threads.
double measure_memory(Index threads) {
  const auto from = buffer(measured_bytes);
  auto to = buffer(measured_bytes);
  const Index part = measured_bytes / threads;
  const double seconds = fastest([&] {
    std::vector<std::jthread> copies;
    for (Index i = 0; i < threads; ++i) {
      copies.emplace_back([&from, &to, part, i] {
        std::memcpy(to.data() + i * part, from.data() + i * part, part);
      });
    }
  });
  return 2.0 * static_cast<double>(part * threads) / seconds;
}

/// Returns the bytes per second that one thread copies through a staging buffer in chunks. Within a
/// node, the sender copies a message in and the receiver copies it out. Each rank does both.
double measure_messages() {
  const auto from = buffer(measured_bytes);
  auto staging = buffer(chunk_within_node), to = buffer(measured_bytes);
  const double seconds = fastest([&] {
    for (Index at = 0; at < measured_bytes; at += chunk_within_node) {
      std::memcpy(staging.data(), from.data() + at, chunk_within_node);
      std::memcpy(to.data() + at, staging.data(), chunk_within_node);
    }
  });
  return static_cast<double>(measured_bytes) / seconds;
}

}  // namespace

bool can_measure_blocks() { return tensor::on_host; }

RateSource::RateSource(const GivenRates& given, const deck::Config& config, Index threads)
    : given_(given), threads_(threads) {
  if (!given.operations) measured_.operations = block_rate(config, threads);
  if (!given.memory_bytes) measured_.memory_bytes = measure_memory(threads);
  if (!given.sent_bytes) measured_.sent_bytes = measure_messages();
}

Rates RateSource::of_rank(Index threads, double core_share) const {
  const double share = core_share * static_cast<double>(threads) / static_cast<double>(threads_);
  return {given_.operations.value_or(measured_.operations * share),
          given_.memory_bytes.value_or(measured_.memory_bytes * share),
          given_.sent_bytes.value_or(core_share * measured_.sent_bytes)};
}

}  // namespace kzero::plan
