// Writes the log-probabilities of a file's documents, with the hashes of model and documents.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "data/document_files.hpp"
#include "grid/group.hpp"
#include "infer/source.hpp"
#include "storage/atomic_file.hpp"

namespace kzero::infer {

class LogProbOutput {
 public:
  /// Opens the file on the root, so that a path that cannot be written is refused before anything
  /// is computed. Collective over the group, as write() is.
  LogProbOutput(const grid::Group& world, const std::string& path);

  /// Hashes the weights of the source. Writes the file if every rank can read them.
  void write(const Source& source, const data::DocumentFiles& documents,
             std::vector<double> log_probs);

 private:
  const grid::Group& world_;
  std::optional<storage::AtomicFile> file_;  // on the root
};

}  // namespace kzero::infer
