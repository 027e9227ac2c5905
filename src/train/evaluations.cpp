#include "train/evaluations.hpp"

#include <chrono>

#include "runtime/wall_time.hpp"

namespace kzero::train {

using runtime::seconds_since;
using Clock = std::chrono::steady_clock;

Evaluations::Evaluations(const deck::Config& config, const data::Dataset& dataset, Engine& engine,
                         metrics::Console& console, metrics::JsonlSink* sink)
    : config_(config), dataset_(dataset), engine_(engine), console_(console), sink_(sink) {}

void Evaluations::run_if_due(Index steps_done) {
  const bool is_last = steps_done == config_.train.steps;
  const auto is_due = [&](Index every) { return every > 0 && steps_done % every == 0; };
  const Index every = config_.train.validate_every;
  if (dataset_.validation && every > 0 && (is_due(every) || is_last)) validate(steps_done);
  for (const data::EvaluationSet& set : dataset_.evaluations) {
    if (is_due(set.every) || is_last) evaluate(steps_done, set);
  }
}

void Evaluations::validate(Index steps_done) {
  const auto begin = Clock::now();
  const Index batches = config_.train.validation_batches;
  metrics::ValidationRecord record;
  record.step = steps_done;
  record.loss = engine_.validate(batches, *dataset_.validation);
  record.tokens = batches * config_.train.global_batch * config_.model.sequence;
  record.seconds = seconds_since(begin);
  console_.validation(record);
  if (sink_ != nullptr) sink_->write(record);
}

void Evaluations::evaluate(Index steps_done, const data::EvaluationSet& set) {
  const auto begin = Clock::now();
  metrics::EvaluationRecord record;
  record.name = set.name;
  record.step = steps_done;
  record.loss = engine_.evaluate(set.micro_batches, *set.samples);
  record.tokens = set.micro_batches * config_.train.micro_batch * config_.model.sequence;
  record.seconds = seconds_since(begin);
  console_.evaluation(record);
  if (sink_ != nullptr) sink_->write(record);
}

}  // namespace kzero::train
