// A numeric summary of the data that a run reads: for the start record, the console and `kzero
// check --files`.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

struct DataSummary {
  Index files = 0;                 // of training
  Index tokens = 0;                // in these files
  Index sequences = 0;             // in an epoch of training
  double epochs = 0;               // in the full run
  Index validation_sequences = 0;  // 0: no validation
};

/// Formats the summary as "10.2 G tokens in 103 files, 9.9 M sequences, 0.85 epochs", followed by a
/// line for validation if there is any. Each line begins with its name, as in the console's header;
/// no line end.
std::string data_lines(const DataSummary& data);

}  // namespace kzero::metrics
