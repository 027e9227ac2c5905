#include "plan/proposals.hpp"

#include <algorithm>

namespace kzero::plan {

namespace {

struct Offloads {
  deck::Offload of_state, of_inputs;
};

/// The kinds of sharding of a stage: over all ranks, and with a copy for each node.
std::vector<deck::Zero> sharding_variants(const deck::Config& deck) {
  using Parameters = deck::SharesParameters;
  using Gradients = deck::KeepsSums;
  std::vector<deck::Zero> all;
  const bool has_nodes = deck.placement.data_nodes != 1;
  for (Index stage = 0; stage <= 3; ++stage) {
    deck::Zero zero = deck.zero;
    zero.stage = stage;
    zero.parameters = Parameters::ranks;
    zero.gradients = Gradients::automatic;
    all.push_back(zero);
    if (!has_nodes || stage < 2) continue;
    for (const Gradients gradients : {Gradients::owners, Gradients::nodes}) {
      zero.gradients = gradients;
      all.push_back(zero);
    }
    if (stage < 3) continue;
    zero.parameters = Parameters::node;
    all.push_back(zero);
  }
  return all;
}

/// Combinations of offloads, the smallest first. Without memory of the host, only the deck's own.
std::vector<Offloads> offload_variants(const deck::Config& deck, const deck::Recompute& recompute,
                                       const Room& room) {
  using enum deck::Offload;
  if (room.host == 0) return {{deck.zero.offload, deck.recompute.offload}};
  if (recompute.mode != deck::RecomputeMode::full) return {{none, none}, {host, none}};
  return {{none, none}, {none, host}, {host, none}, {host, host}};
}

std::string place_of(deck::Offload offload) {
  return offload == deck::Offload::host ? "host" : "none";
}

Settings settings_of(const Entry& entry, const deck::Config& deck, const deck::Zero& zero) {
  Settings settings{{"grid.tensor", entry.tensor_ranks},
                    {"zero.stage", entry.stage},
                    {"train.micro_batch", entry.micro_batch},
                    {"recompute.mode", std::string(name_of(entry.recompute.mode))}};
  if (entry.recompute.partition) settings.emplace_back("recompute.partition", true);
  if (zero.gradients == deck::KeepsSums::nodes) settings.emplace_back("zero.gradients", "node");
  if (zero.gradients == deck::KeepsSums::owners) settings.emplace_back("zero.gradients", "rank");
  if (zero.parameters == deck::SharesParameters::node)
    settings.emplace_back("zero.parameters", "node");
  if (zero.offload != deck.zero.offload)
    settings.emplace_back("zero.offload", place_of(zero.offload));
  if (entry.recompute.offload != deck.recompute.offload)
    settings.emplace_back("recompute.offload", place_of(entry.recompute.offload));
  return settings;
}

/// Whether a kind of sharding makes no difference: it repeats the proposal before it.
bool is_repetition(const Entry& entry, const std::vector<Proposal>& found) {
  return std::ranges::any_of(found, [&](const Proposal& other) {
    return other.entry.stage == entry.stage && other.entry.recompute == entry.recompute &&
           other.entry.total_bytes() == entry.total_bytes() &&
           other.entry.estimate->seconds() == entry.estimate->seconds();
  });
}

}  // namespace

std::vector<Proposal> proposals(const deck::Config& deck, Index ranks, Index threads,
                                const Room& room, const Estimating& add_estimate) {
  const Fitter fitter(ranks, threads, room);
  std::vector<Proposal> found;
  for (const deck::Zero& zero : sharding_variants(deck)) {
    for (const deck::Recompute& recompute : recompute_variants(deck)) {
      Index largest = 0;  // micro-batch with fewer offloads
      for (const auto& [of_state, of_inputs] : offload_variants(deck, recompute, room)) {
        deck::Config config = deck;
        config.zero = zero;
        config.zero.offload = of_state;
        config.recompute = recompute;
        config.recompute.offload = of_inputs;
        auto entry = fitter.largest_micro_batch(config);
        if (!entry || entry->micro_batch <= largest) continue;
        largest = entry->micro_batch;
        add_estimate(*entry);
        if (is_repetition(*entry, found)) continue;
        found.push_back({*entry, settings_of(*entry, deck, config.zero)});
      }
    }
  }
  return found;
}

void sort_by_time(std::vector<Proposal>& proposals) {
  std::ranges::stable_sort(
      proposals, {}, [](const Proposal& proposal) { return proposal.entry.estimate->seconds(); });
}

}  // namespace kzero::plan
