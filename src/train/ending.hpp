// How a run ended, for people and for job scripts: launchers lose exit codes.
#pragma once

#include <filesystem>
#include <string>

#include "deck/config.hpp"
#include "metrics/records.hpp"

namespace kzero::train {

/// run.end_file, else end.json beside the checkpoints; empty: neither is set.
std::filesystem::path end_file(const deck::Config& config);

/// The last line of a run that stopped before its last step: what stopped it, and what to do.
std::string stop_text(const metrics::EndRecord& record, const deck::Config& config);

/// Replaces the end file by one line of JSON: reason, signal, exit_code, steps. Nothing where there
/// is no such file. Throws Error(files).
void write_end_file(const metrics::EndRecord& record, const deck::Config& config);

/// An end file of an earlier run says nothing about this one. Throws Error(files).
void remove_end_file(const deck::Config& config);

}  // namespace kzero::train
