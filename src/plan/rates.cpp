#include "plan/rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
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

std::vector<std::byte> buffer(Index bytes) { return std::vector<std::byte>(bytes); }

/// Returns the bytes per second, read plus written, of a copy on all threads.
MeasuredRate measure_memory(Index threads) {
  const auto from = buffer(measured_bytes);
  auto to = buffer(measured_bytes);
  const Index part = measured_bytes / threads;
  const auto copy = [&](Index i) {
    std::memcpy(to.data() + i * part, from.data() + i * part, part);
  };
  const Timing time =
      threads == 1 ? fastest_of(Clock::core, [&] { copy(0); }) : fastest_of(Clock::wall, [&] {
        std::vector<std::jthread> copies;
        for (Index i = 0; i < threads; ++i) copies.emplace_back([&copy, i] { copy(i); });
      });
  return {2.0 * static_cast<double>(part * threads) / time.seconds, time.spread};
}

/// Returns the bytes per second that one thread copies through a staging buffer in chunks. Within a
/// node, the sender copies a message in and the receiver copies it out. Each rank does both.
MeasuredRate measure_messages() {
  const auto from = buffer(measured_bytes);
  auto staging = buffer(chunk_within_node), to = buffer(measured_bytes);
  const Timing time = fastest_of(Clock::core, [&] {
    for (Index at = 0; at < measured_bytes; at += chunk_within_node) {
      std::memcpy(staging.data(), from.data() + at, chunk_within_node);
      std::memcpy(to.data() + at, staging.data(), chunk_within_node);
    }
  });
  return {static_cast<double>(measured_bytes) / time.seconds, time.spread};
}

}  // namespace

bool can_measure_blocks() { return tensor::on_host; }

RateSource::RateSource(const GivenRates& given, const deck::Config& config, Index threads,
                       bool is_busy)
    : given_(given), threads_(threads), is_busy_(is_busy) {
  if (!given.operations) measured_.operations = taken(block_rate(config, threads));
  if (!given.memory_bytes) measured_.memory_bytes = taken(measure_memory(threads));
  if (!given.sent_bytes) measured_.sent_bytes = taken(measure_messages());
}

double RateSource::taken(const MeasuredRate& measured) {
  spread_ = std::max(spread_, measured.spread);
  return measured.rate;
}

std::vector<std::string> RateSource::warnings() const {
  constexpr double max_spread = 1.5;
  std::vector<std::string> all;
  if (is_busy_)
    all.emplace_back(
        "this node is busy: the rates are those of one of its cores, times the threads of a rank; "
        "an idle node, or --rates, gives better ones");
  if (spread_ > max_spread)
    all.push_back(fmt::format(
        "repeated measurements of the rates differ by a factor of {:.1f}; the fastest are used",
        spread_));
  return all;
}

Rates RateSource::of_rank(Index threads, double core_share) const {
  const double share = core_share * static_cast<double>(threads) / static_cast<double>(threads_);
  return {given_.operations.value_or(measured_.operations * share),
          given_.memory_bytes.value_or(measured_.memory_bytes * share),
          given_.sent_bytes.value_or(core_share * measured_.sent_bytes)};
}

}  // namespace kzero::plan
