#include "run/adapters.hpp"

#include <fmt/format.h>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "grid/agreement.hpp"
#include "metrics/progress.hpp"

namespace kzero::run {

void require_base(const RunInputs& inputs, const deck::Config& config, std::uint64_t hash) {
  const std::string found = format_checksum(hash);
  if (inputs.adapters_base.empty() || inputs.adapters_base == found) return;
  throw grid::AgreedError(
      ExitCode::usage,
      fmt::format("lora.initial = \"{}\": its adapters were trained on weights of hash {}, but "
                  "those of model.initial = \"{}\" have hash {}; set model.initial to the weights "
                  "that they were trained on",
                  config.lora.initial, printable(inputs.adapters_base), config.model.initial,
                  found));
}

std::string adapters_note(const engine::Blueprint& blueprint) {
  const auto count = [](const param::Table& table) {
    return metrics::format_count(static_cast<double>(param::elements_of(table)));
  };
  return fmt::format("adapters    {} of {} parameters train", count(blueprint.trained),
                     count(blueprint.table));
}

}  // namespace kzero::run
