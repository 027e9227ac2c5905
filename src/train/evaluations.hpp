// Losses on data that is not trained on, while a run trains: validation and the deck's
// [[evaluate]].
#pragma once

#include "data/dataset.hpp"
#include "deck/config.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "train/engine.hpp"

namespace kzero::train {

class Evaluations {
 public:
  /// `sink` is null but on rank 0. All references must outlive the object.
  Evaluations(const deck::Config& config, const data::Dataset& dataset, Engine& engine,
              metrics::Console& console, metrics::JsonlSink* sink);

  /// Evaluates what is due after so many steps, which after the last one is all, and reports it.
  /// Collective over all ranks.
  void run_if_due(Index steps_done);

 private:
  void validate(Index steps_done);
  void evaluate(Index steps_done, const data::EvaluationSet& set);

  const deck::Config& config_;
  const data::Dataset& dataset_;
  Engine& engine_;
  metrics::Console& console_;
  metrics::JsonlSink* sink_;
};

}  // namespace kzero::train
