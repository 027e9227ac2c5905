#include "plan/fit.hpp"

#include "plan/fitter.hpp"

namespace kzero::plan {

Settings Answer::settings() const {
  const auto searched =
      search == Search::micro_batch
          ? std::pair<std::string, Setting>{"train.micro_batch", entry.micro_batch}
          : std::pair<std::string, Setting>{"model.layers", entry.layers};
  Settings settings{{"zero.stage", entry.stage},
                    searched,
                    {"recompute.mode", std::string(name_of(entry.recompute.mode))}};
  if (entry.tensor_ranks > 1) {
    settings.emplace_back("grid.tensor", entry.tensor_ranks);
    settings.emplace_back("recompute.partition", entry.recompute.partition);
  }
  return settings;
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
    for (const deck::Recompute& recompute : recompute_variants(deck)) {
      config.recompute = recompute;
      if (auto entry = fitter.largest_micro_batch(config))
        found.answers.push_back({Search::micro_batch, std::move(*entry)});
      if (auto entry = fitter.most_layers(config))
        found.answers.push_back({Search::layers, std::move(*entry)});
    }
  }
  return found;
}

}  // namespace kzero::plan
