#include "plan/fitter.hpp"

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "plan/search.hpp"

namespace kzero::plan {

std::optional<Entry> Fitter::attempt(deck::Config config) const {
  if (refusal(config)) return std::nullopt;
  try {
    Entry entry = plan(config, threads_);
    const Index on_device = entry.device_bytes(), on_host = entry.total_bytes() - on_device;
    // Without offload, a host only has the small buffers that a device copies from.
    const bool offloads = config.zero.offload == deck::Offload::host ||
                          config.recompute.offload == deck::Offload::host;
    if (on_device <= room_.device && (!offloads || on_host <= room_.host)) return entry;
  } catch (const Error& error) {  // its memory overflows the counter
    if (error.code() != ExitCode::memory) throw;
  }
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

// A larger micro-batch may need less: without a second round nothing is accumulated.
std::optional<Entry> Fitter::largest_micro_batch(deck::Config config) const {
  const Index batch = config.train.global_batch;
  if (config.train.sequence_chunks > 1) return attempt(config);
  for (Index micro = batch / config.grid.data; micro > 0; --micro) {
    if (batch % micro != 0) continue;
    config.train.micro_batch = micro;
    if (auto entry = attempt(config)) return entry;
  }
  return std::nullopt;
}

std::optional<Entry> Fitter::longest_sequence(deck::Config config) const {
  constexpr Index chunk_step = 64;
  const Index step = chunk_step * config.train.sequence_chunks;
  config.train.micro_batch = 1;
  const auto with = [&](Index steps) {
    config.model.sequence = steps * step;
    return attempt(config);
  };
  const Index steps = largest([&](Index n) { return with(n).has_value(); });
  return steps > 0 ? with(steps) : std::nullopt;
}

std::optional<Entry> Fitter::most_layers(deck::Config config) const {
  const auto with = [&](Index layers) {
    config.model.layers = layers;
    return attempt(config);
  };
  const Index layers = largest([&](Index n) { return with(n).has_value(); });
  return layers > 0 ? with(layers) : std::nullopt;
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
