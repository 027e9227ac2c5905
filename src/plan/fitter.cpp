#include "plan/fitter.hpp"

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "plan/search.hpp"

namespace kzero::plan {

namespace {

constexpr Index chunk_step = 64;  // of searched sequences, in tokens of a chunk

}  // namespace

std::optional<Entry> Fitter::planned(deck::Config& config) const {
  if (refusal(config)) return std::nullopt;
  try {
    return plan(config, threads_);
  } catch (const Error& error) {  // its memory overflows the counter
    if (error.code() != ExitCode::memory) throw;
  }
  return std::nullopt;
}

double Fitter::load_of(const deck::Config& config, const Entry& entry) const {
  const Index on_device = entry.device_bytes(), on_host = entry.total_bytes() - on_device;
  // Without offload, a host only has the small buffers that a device copies from.
  const bool offloads =
      config.zero.offload == deck::Offload::host || config.recompute.offload == deck::Offload::host;
  const auto share = [](Index bytes, Index room) {
    return static_cast<double>(bytes) / static_cast<double>(room);
  };
  return std::max(share(on_device, room_.device), offloads ? share(on_host, room_.host) : 0);
}

double Fitter::load_of(deck::Config config) const {
  const auto entry = planned(config);
  return entry ? load_of(config, *entry) : std::numeric_limits<double>::infinity();
}

std::optional<Entry> Fitter::attempt(deck::Config config) const {
  auto entry = planned(config);
  if (entry && load_of(config, *entry) <= 1) return entry;
  return std::nullopt;
}

std::optional<std::string> Fitter::refusal(deck::Config& config) const {
  try {
    deck::resolve(config, {ranks_, deck::Purpose::plan});
  } catch (const Error& error) {
    return error.what();
  }
  return std::nullopt;
}

bool Fitter::holds_states(deck::Config config) const {
  config.model.sequence = chunk_step * config.train.sequence_chunks;
  config.train.micro_batch = 1;
  const auto entry = planned(config);
  if (!entry) return true;  // not known
  Index bytes = 0;
  for (const metrics::CategoryBytes& category : entry->memory)
    if (category.name == "parameters" || category.name == "optimizer")
      bytes += category.planned_bytes;
  return bytes <= room_.device;
}

// A larger micro-batch may need less: without a second round nothing is accumulated.
std::optional<Entry> Fitter::largest_micro_batch(deck::Config config) const {
  Index batch = config.train.global_batch;  // a divisor of that of every phase
  for (const deck::BatchPhase& phase : config.train.phases)
    batch = std::gcd(batch, phase.global_batch);
  if (config.train.sequence_chunks > 1) return attempt(config);
  for (Index micro = batch / config.grid.data; micro > 0; --micro) {
    if (batch % micro != 0) continue;
    config.train.micro_batch = micro;
    if (auto entry = attempt(config)) return entry;
  }
  return std::nullopt;
}

std::optional<Entry> Fitter::longest_sequence(deck::Config config) const {
  const Index step = chunk_step * config.train.sequence_chunks;
  config.train.micro_batch = 1;
  const auto with = [&](Index steps) {
    config.model.sequence = steps * step;
    return config;
  };
  const Index steps = largest_by_load([&](Index n) { return load_of(with(n)); });
  return steps > 0 ? attempt(with(steps)) : std::nullopt;
}

std::optional<Entry> Fitter::max_layers(deck::Config config) const {
  const auto with = [&](Index layers) {
    config.model.layers = layers;
    return config;
  };
  const Index layers = largest_by_load([&](Index n) { return load_of(with(n)); });
  return layers > 0 ? attempt(with(layers)) : std::nullopt;
}

std::vector<deck::Recompute> recompute_variants(const deck::Config& deck) {
  using Mode = deck::RecomputeMode;
  std::vector<deck::Recompute> all;
  for (const Mode mode : {Mode::none, Mode::layernorm_gelu, Mode::feed_forward, Mode::full})
    all.push_back({mode, false, deck.recompute.offload});
  if (deck.grid.tensor > 1) all.push_back({Mode::full, true, deck.recompute.offload});
  return all;
}

}  // namespace kzero::plan
