#include "run/rate_warning.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "deck/changes.hpp"
#include "optim/schedule.hpp"

namespace kzero::run {

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
  return rises ? text + remedy(*saved) : text;
}

}  // namespace kzero::run
