#include "run/restart_rules.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "checkpoint/inspect.hpp"
#include "checkpoint/reader.hpp"
#include "deck/architecture.hpp"
#include "deck/changes.hpp"
#include "optim/optimizer.hpp"
#include "optim/schedule.hpp"

namespace kzero::run {

namespace {

/// Explains how to start another training from only the weights.
std::string with_its_weights(const checkpoint::Found& found) {
  return fmt::format(
      "to start another training from its weights, run `kzero convert {} weights.safetensors` and "
      "set model.initial = \"weights.safetensors\" and another checkpoint.folder",
      found.path.string());
}

/// Other factors of the model may follow from another model.base_width. Empty if it is the same.
std::string cause_of_changes(const checkpoint::Manifest& saved, const deck::Model& now) {
  const auto before = deck::recorded(saved.deck);
  if (!before || before->model.base_width == now.base_width) return "";
  return fmt::format("model.base_width is {}, was {}: ", now.base_width, before->model.base_width);
}

void require_same_model(const checkpoint::Found& found, const RunRequest& request) {
  const auto changes = deck::architecture_changes(found.manifest.model, request.config.model);
  KZERO_REQUIRE(changes.empty(), ExitCode::usage,
                "{}: is of another model ({}{}), so its weights would compute something else; set "
                "[model] as it was saved, or choose another checkpoint.folder to start afresh",
                found.path.string(), cause_of_changes(found.manifest, request.config.model),
                fmt::join(changes, "; "));
}

/// Adapters compute what they learned with their own rank, scale and frozen weights alone.
void require_same_adapters(const checkpoint::Found& found, const RunRequest& request,
                           std::uint64_t base_hash) {
  const auto& saved = found.manifest.adapters;
  const deck::Lora& lora = request.config.lora;
  const std::string path = found.path.string();
  KZERO_REQUIRE(!saved || trains_adapters(lora), ExitCode::usage,
                "{}: holds adapters of rank {} alone, but the deck trains all weights; restore "
                "[lora], or choose another checkpoint.folder to start afresh",
                path, saved->lora.rank);
  if (!trains_adapters(lora)) return;
  KZERO_REQUIRE(saved, ExitCode::usage,
                "{}: holds all weights, but lora.rank = {} trains adapters alone; run `kzero "
                "convert {} FOLDER`, set model.initial = \"FOLDER\" and choose another "
                "checkpoint.folder",
                path, lora.rank, path);
  KZERO_REQUIRE(
      saved->lora.rank == lora.rank && saved->lora.alpha == lora.alpha &&
          saved->lora.targets == lora.targets,
      ExitCode::usage,
      "{}: its adapters have lora.rank = {}, lora.alpha = {} and lora.targets {}, the deck has {}, "
      "{} and {}; set [lora] as it was saved, or choose another checkpoint.folder to start afresh",
      path, saved->lora.rank, saved->lora.alpha, fmt::join(saved->lora.targets, ", "), lora.rank,
      lora.alpha, fmt::join(lora.targets, ", "));
  KZERO_REQUIRE(saved->base_hash == base_hash, ExitCode::usage,
                "{}: its adapters were trained on frozen weights of hash {}, but those of "
                "model.initial = \"{}\" have hash {}; set model.initial to the weights that they "
                "were trained on, or choose another checkpoint.folder to start afresh",
                path, format_checksum(saved->base_hash), request.config.model.initial,
                format_checksum(base_hash));
}

void require_same_state(const checkpoint::Found& found, const RunRequest& request,
                        const engine::Blueprint& blueprint) {
  const checkpoint::Manifest& m = found.manifest;
  // Before the first step every optimizer's state is zero, whether it was saved or not.
  if (m.step == 0 || is_of_same_optimizer(found, blueprint)) return;
  if (request.config.checkpoint.reset_optimizer) return;
  fail(ExitCode::usage,
       "{}: is of another optimizer: it holds {}, the deck's optimizer keeps {} (optimizer.kind is "
       "\"{}\", was \"{}\"); restore [optimizer], or set checkpoint.reset_optimizer = true to "
       "resume with its weights and begin the optimizer's other state from zero, or {}",
       found.path.string(), checkpoint::names_of(m.state_arrays, m.reduced_arrays),
       checkpoint::names_of(blueprint.state_arrays(), blueprint.optimizer->reduced_state()),
       blueprint.optimizer->kind(), m.optimizer, with_its_weights(found));
}

void require_same_data(const checkpoint::Found& found, const RunRequest& request,
                       std::uint64_t data_digest) {
  const checkpoint::Manifest& m = found.manifest;
  const deck::Config& config = request.config;
  if (m.samples == 0 || m.data_digest == data_digest || config.checkpoint.allow_new_data) return;
  std::vector<std::string> changes;
  for (const std::string& change : deck::changes(m.deck, request.deck)) {
    const bool concerns = change.starts_with("data.") || change.starts_with("train.seed") ||
                          change.starts_with("preference.reference") ||
                          change.starts_with("distill.file");
    if (concerns) changes.push_back(change);
  }
  if (changes.empty())
    changes.push_back(fmt::format("the files of {} differ",
                                  config.data.blend.empty() ? "data.files" : "data.blend"));
  fail(ExitCode::usage,
       "{}: was written by a run with other training data, or the same in another order ({}); "
       "restore them, or set checkpoint.allow_new_data = true to resume with these, or {}",
       found.path.string(), fmt::join(changes, "; "), with_its_weights(found));
}

}  // namespace

bool is_of_same_optimizer(const checkpoint::Found& found, const engine::Blueprint& blueprint) {
  return found.manifest.optimizer == blueprint.optimizer->kind() &&
         found.manifest.state_arrays == blueprint.state_arrays() &&
         found.manifest.reduced_arrays == blueprint.optimizer->reduced_state();
}

void require_same_training(const checkpoint::Found& found, const RunRequest& request,
                           const engine::Blueprint& blueprint, const Sources& sources) {
  require_same_adapters(found, request, sources.base_hash);
  require_same_model(found, request);
  require_same_state(found, request, blueprint);
  require_same_data(found, request, sources.data_digest);
}

namespace {

constexpr double jump = 1.25;  // a smaller factor is no jump

/// How a run is extended without a rise of the rate.
std::string remedy(const deck::Config& saved) {
  if (saved.optimizer.schedule == deck::Schedule::wsd)
    return fmt::format(
        "\n            to extend a run with optimizer.schedule = \"wsd\", resume from a checkpoint "
        "of step {} or before, where its decay begins",
        std::max<Index>(0, saved.train.steps - saved.optimizer.decay));
  return "\n            a run that may be extended needs optimizer.schedule = \"wsd\", which keeps "
         "the "
         "rate until the last optimizer.decay steps,"
         "\n            or \"constant\" with optimizer.ema, which averages the weights instead";
}

}  // namespace

std::string rate_warning(const checkpoint::Manifest& manifest, const deck::Config& config) {
  const Index step = manifest.step;
  const auto saved = deck::recorded(manifest.deck);
  if (!saved || step == 0 || step >= config.train.steps) return "";
  const auto rate = [](const deck::Config& of, Index at) {
    return optim::learning_rate(of.optimizer, at, of.train.steps);
  };
  const double last = rate(*saved, step - 1), next = rate(config, step);
  const bool is_as_planned = next == rate(*saved, step);
  if (is_as_planned || std::max(last, next) < jump * std::min(last, next)) return "";
  const bool rises = next > last;
  std::string text =
      fmt::format("warning     the learning rate {}{}: {:.2g} in step {}, {:.2g} in step {}",
                  rises ? "rises" : "falls",
                  last > 0 && next > 0
                      ? fmt::format(" by a factor of {:.3g}", rises ? next / last : last / next)
                      : "",
                  last, step, next, step + 1);
  if (saved->train.steps != config.train.steps)
    text += fmt::format("; the schedule now spans {} steps, not {}", config.train.steps,
                        saved->train.steps);
  const bool is_extended = saved->train.steps < config.train.steps;
  return rises && is_extended ? text + remedy(*saved) : text;
}

}  // namespace kzero::run
