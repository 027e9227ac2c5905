// A numeric summary of the data that a run reads, for the start record, the console and `kzero
// check --files`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"

namespace kzero::metrics {

/// A source of a blend.
struct SourceSummary {
  std::string name{};
  double share = 0;  // of the training samples, 0 to 1
  Index files = 0, tokens = 0;
  Index sequences = 0;  // in one of its epochs
  double epochs = 0;    // of this source, in the full run
};

/// The data of an evaluation.
struct EvaluationSummary {
  std::string name{};
  Index files = 0, tokens = 0;
  Index sequences = 0;  // that one evaluation reads
};

/// How documents of training fill their sequences in one epoch.
struct PackingSummary {
  Index documents = 0;
  Index positions = 0;  // of all sequences
  Index tokens = 0;     // positions with a document
  Index targets = 0;
  double least_weight = 1, largest_weight = 1;  // of the documents

  bool has_weights() const { return least_weight != 1 || largest_weight != 1; }
};

struct DataSummary {
  Index files = 0;                               // of training
  Index tokens = 0;                              // in these files
  Index sequences = 0;                           // in an epoch of training
  double epochs = 0;                             // in the full run
  Index validation_sequences = 0;                // 0: no validation
  std::optional<PackingSummary> packing{};       // of documents; nullopt: a stream of tokens
  std::vector<SourceSummary> sources{};          // of a blend; empty: there is none
  std::vector<EvaluationSummary> evaluations{};  // of [[evaluate]]
};

/// Formats the summary as "10.2 G tokens in 103 files, 9.9 M sequences, 0.85 epochs", followed by a
/// line for the packing of documents, for each source of a blend, for validation and for each
/// evaluation. Each line begins with its name, as in the console's header. The text does not end
/// with a line end.
std::string data_lines(const DataSummary& data);

}  // namespace kzero::metrics
