#include "plan/fit.hpp"

#include <algorithm>
#include <tuple>

#include "plan/fitter.hpp"

namespace kzero::plan {

Settings Answer::settings() const {
  Settings settings{{"zero.stage", entry.stage}};
  if (search == Search::layers) settings.emplace_back("model.layers", entry.layers);
  if (search == Search::sequence) settings.emplace_back("model.sequence", entry.sequence);
  if (search != Search::layers) settings.emplace_back("train.micro_batch", entry.micro_batch);
  settings.emplace_back("recompute.mode", std::string(name_of(entry.recompute.mode)));
  if (entry.tensor_ranks > 1) {
    settings.emplace_back("grid.tensor", entry.tensor_ranks);
    settings.emplace_back("recompute.partition", entry.recompute.partition);
  }
  return settings;
}

void sort(Fit& fit) {
  const auto rank = [](const Answer& answer) {
    const Entry& entry = answer.entry;
    const Index size = answer.search == Search::layers     ? entry.layers
                       : answer.search == Search::sequence ? entry.sequence
                                                           : 0;
    return std::tuple(answer.search, -size, entry.estimate ? -entry.tokens_per_second() : 0.0);
  };
  std::ranges::stable_sort(fit.answers, {}, rank);
}

Fit fit(const deck::Config& deck, Index ranks, Index threads, Index bytes) {
  const Fitter fitter(ranks, threads, {.device = bytes});
  Fit found;
  for (Index stage = 0; stage <= 3; ++stage) {
    deck::Config config = deck;
    config.zero.stage = stage;
    config.recompute.partition = false;
    if (auto reason = fitter.refusal(config)) {
      found.refusals.push_back({stage, std::move(*reason)});
      continue;
    }
    const bool holds_states = fitter.holds_states(config);
    for (const deck::Recompute& recompute : recompute_variants(deck)) {
      config.recompute = recompute;
      if (auto entry = holds_states ? fitter.largest_micro_batch(config) : std::nullopt)
        found.answers.push_back({Search::micro_batch, std::move(*entry)});
      if (auto entry = holds_states ? fitter.longest_sequence(config) : std::nullopt)
        found.answers.push_back({Search::sequence, std::move(*entry)});
      if (auto entry = fitter.max_layers(config))
        found.answers.push_back({Search::layers, std::move(*entry)});
    }
  }
  return found;
}

}  // namespace kzero::plan
