// Reports on the data before the first step.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "metrics/data_summary.hpp"

namespace kzero::run {

/// Summarizes a dataset without problems.
metrics::DataSummary summary_of(const deck::Config& config, const data::Dataset& dataset);

/// Returns a line for each allowed but probably unintended setting: validation or evaluation that
/// reads sequences more than once, and validation data that is never used.
std::vector<std::string> data_warnings(const deck::Config& config, const data::Dataset& dataset);

}  // namespace kzero::run
