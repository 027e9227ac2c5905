#include "plan/fit.hpp"

#include "base/error.hpp"
#include "deck/rules.hpp"
#include "plan/search.hpp"

namespace kzero::plan {

namespace {

/// Plans variants of a deck for one budget.
class Fitter {
 public:
  Fitter(Index ranks, Index threads, Index bytes)
      : ranks_(ranks), threads_(threads), bytes_(bytes) {}

  /// Returns the plan of a deck if the rules accept it and it fits.
  std::optional<Entry> attempt(deck::Config config) const {
    if (refusal(config)) return std::nullopt;
    try {
      Entry entry = plan(config, threads_);
      if (entry.device_bytes() <= bytes_) return entry;
    } catch (const Error& error) {  // its memory overflows the counter
      if (error.code() != ExitCode::memory) throw;
    }
    return std::nullopt;
  }

  /// Completes a deck by the rules, or returns their objections.
  std::optional<std::string> refusal(deck::Config& config) const {
    try {
      deck::resolve(config, {ranks_, deck::Purpose::plan});
    } catch (const Error& error) {
      return error.what();
    }
    return std::nullopt;
  }

  std::optional<Entry> largest_micro_batch(deck::Config config) const {
    const Index batch = config.train.global_batch;
    for (Index micro = batch / config.grid.data; micro > 0; --micro) {
      if (batch % micro != 0) continue;
      config.train.micro_batch = micro;
      if (auto entry = attempt(config)) return entry;
    }
    return std::nullopt;
  }

  std::optional<Entry> most_layers(deck::Config config) const {
    const auto with = [&](Index layers) {
      config.model.layers = layers;
      return attempt(config);
    };
    const Index layers = largest([&](Index n) { return with(n).has_value(); });
    return layers > 0 ? with(layers) : std::nullopt;
  }

 private:
  Index ranks_, threads_, bytes_;
};

/// The recomputation modes to try. P_a needs tensor ranks to partition a block's input.
std::vector<deck::Recompute> variants(const deck::Config& deck) {
  using Mode = deck::RecomputeMode;
  std::vector<deck::Recompute> all;
  for (const Mode mode : {Mode::none, Mode::layernorm_gelu, Mode::full})
    all.push_back({mode, false, deck.recompute.offload});
  if (deck.grid.tensor > 1) all.push_back({Mode::full, true, deck.recompute.offload});
  return all;
}

}  // namespace

std::vector<std::pair<std::string, Setting>> Answer::settings() const {
  const auto searched =
      search == Search::micro_batch
          ? std::pair<std::string, Setting>{"train.micro_batch", entry.micro_batch}
          : std::pair<std::string, Setting>{"model.layers", entry.layers};
  std::vector<std::pair<std::string, Setting>> settings{
      {"zero.stage", entry.stage},
      searched,
      {"recompute.mode", std::string(name_of(entry.recompute.mode))}};
  if (entry.tensor_ranks > 1) {
    settings.emplace_back("grid.tensor", entry.tensor_ranks);
    settings.emplace_back("recompute.partition", entry.recompute.partition);
  }
  return settings;
}

Fit fit(const deck::Config& deck, Index ranks, Index threads, Index bytes) {
  const Fitter fitter(ranks, threads, bytes);
  Fit found;
  for (Index stage = 0; stage <= 3; ++stage) {
    deck::Config config = deck;
    config.zero.stage = stage;
    config.recompute.partition = false;
    if (auto reason = fitter.refusal(config)) {
      found.refusals.push_back({stage, std::move(*reason)});
      continue;
    }
    for (const deck::Recompute& recompute : variants(deck)) {
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
