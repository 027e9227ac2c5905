// Reports how a run ended, to people and to job scripts. Launchers lose exit codes.
#pragma once

#include <filesystem>
#include <string>

#include "deck/config.hpp"
#include "metrics/records.hpp"

namespace kzero::run {

/// Returns run.end_file, or end.json in the checkpoint folder. Empty if neither is set.
std::filesystem::path end_file(const deck::Config& config);

/// Returns the last line of a run that stopped before its last step: the reason and what to do.
std::string stop_text(const metrics::EndRecord& record, const deck::Config& config);

/// Replaces the end file by one line of JSON: reason, signal, exit_code, steps. Does nothing if no
/// end file is configured. Throws Error(files).
void write_end_file(const metrics::EndRecord& record, const deck::Config& config);

/// Removes the end file of an earlier run, which does not describe this one. Throws Error(files).
void remove_end_file(const deck::Config& config);

}  // namespace kzero::run
