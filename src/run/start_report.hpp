// Lines for people that a run prints before its first step: data, groups of the optimizer, factors
// of widths, adapters.
#pragma once

#include <string>
#include <vector>

#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "engine/blueprint.hpp"
#include "metrics/data_summary.hpp"
#include "param/spec.hpp"

namespace kzero::run {

/// Summarizes a dataset without problems.
metrics::DataSummary summary_of(const deck::Config& config, const data::Dataset& dataset,
                                Index samples);

/// Returns a line for each setting that is allowed but probably unintended: validation or an
/// evaluation that reads sequences more than once, and validation data that are never used.
std::vector<std::string> data_warnings(const deck::Config& config, const data::Dataset& dataset);

/// One line for each table of [[optimizer.group]], and one for the parameters of none. Empty
/// without such tables. `table` is that of any tensor rank, with the groups of its parameters.
std::vector<std::string> group_lines(const deck::Optimizer& optimizer, const param::Table& table);

/// What follows from model.base_width. Empty without it.
std::string base_width_line(const deck::Config& config, const param::Table& table);

/// The numbers of trained and of frozen parameters, for people.
std::string adapters_note(const engine::Blueprint& blueprint);

}  // namespace kzero::run
