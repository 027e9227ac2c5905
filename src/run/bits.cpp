#include "run/bits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "base/checksum.hpp"
#include "data/batch_sizes.hpp"
#include "deck/changes.hpp"

namespace kzero::run {

namespace {

/// Returns whether sequence ranks may have copies of KV heads, whose gradients are added in another
/// order then.
bool copies_heads(const deck::Config& config) {
  const Index kv_heads = config.model.kv_heads / config.grid.tensor;
  return config.model.kv_heads > 0 && config.train.sequence_chunks > std::max<Index>(1, kv_heads);
}

bool is_of_batches(std::string_view change) {
  return change.starts_with("train.global_batch") || change.starts_with("train.phase");
}

/// Returns whether a new value of the key changes bits in this deck. `change` begins with the key.
bool has_effect(std::string_view change, const deck::Config& config) {
  const std::string_view key = change.substr(0, change.find(' '));
  if (key == "grid.sequence" && copies_heads(config)) return true;
  if (key == "grid.data" || key == "grid.sequence") return !rank_dependence(config).empty();
  if (key == "train.steps") return config.optimizer.schedule != deck::Schedule::constant;
  if (key == "train.seed") return config.model.dropout > 0 || config.model.attention_dropout > 0;
  if (key == "optimizer.loss_scale_window") return config.train.precision == Dtype::fp16;
  return deck::changes_bits(key);
}

}  // namespace

std::vector<std::string> rank_dependence(const deck::Config& config) {
  const auto has_several = [&](const data::Phase& phase) {
    return phase.size / config.train.micro_batch > 1;
  };
  std::vector<std::string> reasons;
  if (config.zero.accumulate == deck::Accumulate::local &&
      std::ranges::any_of(data::BatchSizes(config.train).phases(), has_several))
    reasons.emplace_back("zero.accumulate = \"local\"");
  if (config.zero.reduction == deck::ReductionOrder::library)
    reasons.emplace_back("zero.reduction = \"library\"");
  return reasons;
}

std::vector<std::string> bits_depend_on(const deck::Config& config, const std::string& arithmetic) {
  constexpr std::size_t most = 4;  // of many phases, the line says the first
  const auto& phases = config.train.phases;
  std::string sizes = fmt::format("{}", config.train.global_batch);
  for (std::size_t i = 0; i < std::min(phases.size(), most); ++i)
    sizes += fmt::format(", then {}", phases[i].global_batch);
  if (phases.size() > most) sizes += fmt::format(", and {} more phases", phases.size() - most);
  std::vector<std::string> items{
      "the deck's model",
      "data",
      "seed",
      "optimizer",
      fmt::format("micro-batches of {} of {}, added in {} blocks", config.train.micro_batch, sizes,
                  config.train.sum_blocks),
      fmt::format("train.sequence_chunks {}", config.train.sequence_chunks),
      fmt::format("grid.tensor {}", config.grid.tensor),
      std::string(name_of(config.train.precision))};
  if (config.train.tile_rows > 0)
    items.push_back(fmt::format("train.tile_rows {}", config.train.tile_rows));
  for (std::string_view rest = arithmetic; !rest.empty();) {
    const std::size_t end = std::min(rest.find(", "), rest.size());
    items.emplace_back(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 2, rest.size()));
  }
  if (config.grid.sequence > 1 && copies_heads(config))
    items.push_back(fmt::format("grid.sequence {}, if above the KV heads", config.grid.sequence));
  if (!config.run.deterministic)
    items.emplace_back("the order in which the GPU adds gradients of attention");
  for (const std::string& reason : rank_dependence(config))
    items.push_back(
        fmt::format("the {} data-parallel ranks because of {}", config.grid.data, reason));
  return items;
}

std::optional<Index> first_other_batch(const checkpoint::Manifest& saved,
                                       const deck::Config& config) {
  const auto before = deck::recorded(saved.deck);
  if (!before) return std::nullopt;
  const data::BatchSizes old(before->train), now(config.train);
  std::optional<Index> first;
  const auto consider = [&](Index step) {
    step = std::max(step, saved.step);
    if (step < config.train.steps && old.size(step) != now.size(step))
      first = std::min(first.value_or(step), step);
  };
  for (const data::Phase& phase : old.phases()) consider(phase.first_step);
  for (const data::Phase& phase : now.phases()) consider(phase.first_step);
  return first;
}

std::vector<std::string> bit_changes(const checkpoint::Manifest& saved,
                                     std::span<const std::string> deck_changes,
                                     const deck::Config& config, const Provenance& now) {
  std::vector<std::string> found;
  const bool has_other_batch = first_other_batch(saved, config) == saved.step;
  for (const std::string& change : deck_changes) {
    if (is_of_batches(change) ? has_other_batch : has_effect(change, config))
      found.push_back(change);
  }
  if (!config.run.deterministic) found.emplace_back("run.deterministic is false");
  if (saved.data_digest != now.data_digest) found.emplace_back("the training data differ");
  if (saved.arithmetic != now.arithmetic)
    found.push_back(fmt::format("it computes with {}, was {}", now.arithmetic, saved.arithmetic));
  return found;
}

std::uint64_t bits_digest(const std::string& deck, const deck::Config& config,
                          const Provenance& provenance) {
  std::string all =
      fmt::format("{}\n{}\n", provenance.arithmetic, format_checksum(provenance.data_digest));
  for (const std::string& setting : deck::settings(deck)) {
    if (!is_of_batches(setting) && has_effect(setting, config)) all += setting + '\n';
  }
  return checksum(std::as_bytes(std::span(all)));
}

}  // namespace kzero::run
