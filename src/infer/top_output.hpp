// Writes the most probable tokens of each position of a text or of documents, with the hashes of
// model, tokenizer and data, from which students learn (data/teacher_file.hpp).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "data/sampler.hpp"
#include "data/teacher_file.hpp"
#include "grid/group.hpp"
#include "infer/input_file.hpp"
#include "infer/loaded_model.hpp"
#include "infer/source.hpp"
#include "storage/atomic_file.hpp"

namespace kzero::infer {

/// The rows that a model scores: their number, and the positions of each that are the data's.
struct TaughtRows {
  Index count = 0;
  std::function<Index(Index row)> length;
};

class TopOutput {
 public:
  /// Opens the file on the root, so that a path that cannot be written is refused before anything
  /// is computed. Collective over the group, as the other functions are.
  TopOutput(const grid::Group& world, const std::string& path);

  /// Hashes model and data, and writes the header. Returns a model that scores as `model` does, and
  /// whose calls write the positions in the order of the rows. All must outlive it. `tokenizer` is
  /// the path of the model's, or empty.
  std::unique_ptr<ForwardModel> begin(const Source& source, const InputFile& input,
                                      ForwardModel& model, const grid::Group& data,
                                      const std::string& tokenizer);

  /// Gives the file its name.
  void finish();

 private:
  const grid::Group& world_;
  std::optional<storage::AtomicFile> file_;  // on the root
};

/// The file's rows of `sequence` tokens, as score_text and score_documents have them.
TaughtRows taught_rows(const InputFile& input, Index sequence);

}  // namespace kzero::infer
