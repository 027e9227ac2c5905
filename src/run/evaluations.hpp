// Losses on data that is not trained on: validation and the deck's [[evaluate]]. A stop ends an
// evaluation between two micro-batches, and a restart completes it.
#pragma once

#include <string>

#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "engine/engine.hpp"
#include "grid/group.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "run/evaluation_mark.hpp"

namespace kzero::run {

class Evaluations {
 public:
  /// `sink` is null except on rank 0. All references must outlive the object.
  Evaluations(const deck::Config& config, const grid::Group& world, const data::Dataset& dataset,
              engine::Engine& engine, metrics::Console& console, metrics::JsonlSink* sink);

  /// If evaluations are due after this many steps, marks them in the checkpoint folder. Call this
  /// before the step's checkpoint gets its name, so that a restart from it completes them. Not
  /// collective.
  void mark_if_due(Index steps_done);

  /// Runs the evaluations that mark_if_due() found due; after the last step, that is all. Reports
  /// each complete evaluation. Calls `stops` before each micro-batch. Once it is true, returns
  /// false and does not report the interrupted evaluation. Collective over all ranks.
  bool run_if_due(const engine::StopQuestion& stops);

  /// Does the same when a run resumes from that step's checkpoint and an earlier job began its
  /// evaluations without completing them. Completed evaluations are not repeated. Collective over
  /// all ranks.
  bool complete(Index steps_done, const engine::StopQuestion& stops);

  Index completed() const { return completed_; }

 private:
  bool run(const engine::StopQuestion& stops);
  bool validate(const engine::StopQuestion& stops);
  bool evaluate(const data::EvaluationSet& set, const engine::StopQuestion& stops);
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
