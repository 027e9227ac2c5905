// The data of a run: training, validation and evaluation data, opened as the deck describes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/problem_list.hpp"
#include "data/blend.hpp"
#include "data/data_files.hpp"
#include "data/teacher_file.hpp"
#include "deck/config.hpp"

namespace kzero::data {

/// A source of training samples: the files of [data], or of a table of [[data.blend]].
struct TrainingSource {
  std::string name;  // empty: the deck has no blend
  std::shared_ptr<const DataFiles> files;
  std::shared_ptr<const TeacherFile> teacher{};  // null: none
};

/// The data of a table of [[evaluate]], read in order.
struct EvaluationSet {
  std::string name;
  Index every = 0;          // steps; 0: at the end only
  Index micro_batches = 0;  // that one evaluation reads
  std::shared_ptr<const DataFiles> files;
  std::unique_ptr<const EpochSource> samples;
};

/// The datasets of the deck: training samples, validation and evaluations.
struct Dataset {
  std::vector<TrainingSource> sources;
  std::shared_ptr<const DataFiles>
      validation_files;  // null: the ends of the sources, or no validation
  std::unique_ptr<const Blend> training;
  std::unique_ptr<const Blend> validation;  // always sequential; null: none
  std::vector<EvaluationSet> evaluations;
  std::optional<std::uint64_t> reference_model{};  // engine::weights_hash, with a reference

  /// A digest of everything that determines which tokens a training sample contains: files,
  /// windows or packed documents, order, seed and weights.
  std::uint64_t training_digest() const;

  /// Checks all tokens of all data, as DataFiles::check_tokens does. With one part per rank the
  /// data is read once in total.
  void check_tokens(Index part, Index parts, ProblemList& problems) const;
};

/// Opens the files and divides them into windows of tokens below `vocab`, or into documents.
/// Validation reads validation_files or, without them, the last validation_fraction of the windows
/// or documents of every source, in the proportion of the weights; training then leaves these out.
/// Adds the files' faults to `problems`, including too few tokens. The samples are set only if
/// there are none. `reference` names the file of log-probabilities of the only source's pairs, or
/// is empty. `distill` names the files of a teacher's probabilities, one for each source, or none.
Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     ProblemList& problems, const std::string& reference = {},
                     const deck::Distill& distill = {});

/// Opens the datasets as the overload above does, but throws Error(files) with all problems.
Dataset open_dataset(const deck::Data& deck, Index sequence, Index vocab, std::uint64_t seed,
                     const std::string& reference = {}, const deck::Distill& distill = {});

/// Opens all data of a resolved deck, evaluations included.
Dataset open_dataset(const deck::Config& config, ProblemList& problems);

}  // namespace kzero::data
