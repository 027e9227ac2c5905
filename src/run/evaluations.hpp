// Losses on data that is not trained on, while a run trains: validation and the deck's
// [[evaluate]]. A stop ends them between two micro-batches; a restart then completes them.
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

  /// Marks in the folder of checkpoints that evaluations are due after so many steps, if any are.
  /// Call it before the checkpoint of the step gets its name: a restart from that checkpoint then
  /// completes them. Not collective.
  void mark_if_due(Index steps_done);

  /// Evaluates what mark_if_due() found due, which after the last step is all, and reports each
  /// evaluation that is complete. Asks `stops` before each micro-batch; returns false once it says
  /// yes, and reports nothing of the evaluation that it ended. Collective over all ranks.
  bool run_if_due(const engine::StopQuestion& stops);

  /// Does the same for a run that begins from a checkpoint of that step, if an earlier job began
  /// these evaluations and did not complete them. Evaluations that it completed are not repeated.
  /// Collective over all ranks.
  bool complete(Index steps_done, const engine::StopQuestion& stops);

  /// The number of evaluations that this object has completed.
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
