// kzero check --launch --rates FILE: writes what it measured as a machine for `kzero plan --rates`.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "deck/config.hpp"
#include "probe/survey.hpp"

namespace kzero::app {

/// Operations per second of the launch's slowest rank, by precision.
using PrecisionRates = std::vector<std::pair<Dtype, double>>;

/// Measures a block like the deck's in every precision, on all ranks at once; in builds for
/// devices, whose blocks are not measured, returns nothing. Collective over the launch's world.
PrecisionRates measure_precisions(const probe::Launch& launch, const deck::Config& config);

/// Throws AgreedError unless the launch can be described by a file that can be created: nodes have
/// equally many ranks, and nothing has the file's name. Collective over the launch's world.
void require_new_rates_file(const std::string& file, const probe::Launch& launch);

/// Writes the file on the root. Without `precisions`, the survey's products are the rate of the
/// deck's precision. Throws AgreedError(files). Collective over the launch's world.
void write_rates(const std::string& file, const probe::Launch& launch, const deck::Config& config,
                 const probe::Survey& survey, const PrecisionRates& precisions);

}  // namespace kzero::app
