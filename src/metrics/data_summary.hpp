// What a run reads, in numbers: for the start record, the console and `kzero check --files`.
#pragma once

#include <string>

#include "base/types.hpp"

namespace kzero::metrics {

struct DataSummary {
  Index files = 0;                 // of training
  Index tokens = 0;                // in them
  Index sequences = 0;             // of an epoch of training
  double epochs = 0;               // that the whole run makes
  Index validation_sequences = 0;  // 0: no validation
};

/// "10.2 G tokens in 103 files, 9.9 M sequences, 0.85 epochs", then on a line of its own what there
/// is for validation. Each line begins with its name, as in the console's header; no end of line.
std::string data_lines(const DataSummary& data);

}  // namespace kzero::metrics
