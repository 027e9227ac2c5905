// Evaluates the loss on data outside the training set during a run: validation and the deck's
// [[evaluate]] tables. A stop interrupts an evaluation between two micro-batches. A restart then
// completes it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "base/types.hpp"
#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "engine/engine.hpp"
#include "grid/group.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"

namespace kzero::run {

// A file in the checkpoint folder that marks the evaluations of a step as begun. A restart then
// completes evaluations that a stop or a lost node interrupted. The file is removed once they are
// complete.

inline constexpr const char* evaluation_mark_name = "unfinished_evaluation";

/// The evaluations of a step, some of which may be complete.
struct BegunEvaluations {
  Index step = 0;                       // steps done before the evaluations
  std::vector<std::string> complete{};  // names without line ends

  bool operator==(const BegunEvaluations&) const = default;
};

/// Only the process that holds the folder's lock may call the functions.
class EvaluationMark {
 public:
  /// An empty folder name means a run without checkpoints. Such a run writes no mark.
  explicit EvaluationMark(const std::string& folder);

  /// Replaces the mark, durably. Throws Error(files).
  void write(const BegunEvaluations& begun) const;

  /// Removes the mark. Throws Error(files).
  void remove() const;

  /// Returns the contents of the mark, or nullopt if it is missing or damaged.
  std::optional<BegunEvaluations> read() const;

 private:
  std::filesystem::path path_;  // empty: no marks
};

class Evaluations {
 public:
  /// `sink` is null except on rank 0. All references must outlive the object.
  Evaluations(const deck::Config& config, const grid::Group& world, const data::Dataset& dataset,
              engine::Engine& engine, metrics::Console& console, metrics::JsonlSink* sink);

  /// Writes the mark to the checkpoint folder if evaluations are due after this many steps. Call it
  /// before the checkpoint of the step gets its final name. A restart from that checkpoint then
  /// completes the evaluations. Not collective.
  void mark_if_due(Index steps_done);

  /// Does the same for all evaluations, to compare given weights with later ones. Not collective.
  void mark_before_steps() { mark_if_due(0); }

  /// Runs the evaluations that mark_if_due() found due, and reports each complete one. Before
  /// the first step and after the last one all of them are due. Calls `stops` before each
  /// micro-batch. Once that returns true, returns false without reporting the interrupted
  /// evaluation. Collective over all ranks.
  bool run_if_due(const engine::StopQuestion& stops);

  /// Does the same for a run that resumes a checkpoint of that step, if an earlier job began these
  /// evaluations and did not complete them. Does not repeat those that the earlier job completed.
  /// Collective over all ranks.
  bool complete(Index steps_done, const engine::StopQuestion& stops);

  /// The number of evaluations that this object has completed.
  Index completed() const { return completed_; }

 private:
  bool run(const engine::StopQuestion& stops);
  bool validate(const engine::StopQuestion& stops);
  bool evaluate(const data::EvaluationSet& set, const engine::StopQuestion& stops);
  Index tokens_of(const data::BatchSource& samples, Index count) const;
  bool is_due(Index every) const;
  bool is_validation_due() const;
  bool is_complete(const std::string& name) const;
  void note_stopped(const std::string& what);
  void mark(bool is_begun) const;

  const deck::Config& config_;
  const grid::Group& world_;
  const data::Dataset& dataset_;
  engine::Engine& engine_;
  metrics::Console& console_;
  metrics::JsonlSink* sink_;
  EvaluationMark mark_;
  BegunEvaluations begun_;  // of the newest step
  bool are_due_ = false;    // after that step
  Index completed_ = 0;
};

}  // namespace kzero::run
