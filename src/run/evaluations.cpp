#include "run/evaluations.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <iostream>
#include <sstream>

#include "base/error.hpp"
#include "base/input_file.hpp"
#include "base/printable.hpp"
#include "grid/agreement.hpp"
#include "runtime/wall_time.hpp"
#include "storage/files.hpp"

namespace kzero::run {

using runtime::seconds_since;
using Clock = std::chrono::steady_clock;

namespace {

constexpr const char* validation_name = "validation";

/// Returns the name in the mark. The prefix keeps it different from validation_name.
std::string name_of(const data::EvaluationSet& set) { return "evaluate " + set.name; }

}  // namespace

Evaluations::Evaluations(const deck::Config& config, const grid::Group& world,
                         const data::Dataset& dataset, engine::Engine& engine,
                         metrics::Console& console, metrics::JsonlSink* sink)
    : config_(config),
      world_(world),
      dataset_(dataset),
      engine_(engine),
      console_(console),
      sink_(sink),
      mark_(config.checkpoint.folder) {}

bool Evaluations::is_due(Index every) const {
  const Index steps_done = begun_.step;
  return steps_done == 0 || steps_done == config_.train.steps ||
         (every > 0 && steps_done % every == 0);
}

bool Evaluations::is_validation_due() const {
  const Index every = config_.train.validate_every;
  return dataset_.validation && every > 0 && is_due(every);
}

void Evaluations::mark_if_due(Index steps_done) {
  begun_ = {steps_done};
  are_due_ = is_validation_due() ||
             std::ranges::any_of(dataset_.evaluations,
                                 [&](const data::EvaluationSet& set) { return is_due(set.every); });
  if (are_due_) mark(true);
}

bool Evaluations::run_if_due(const engine::StopQuestion& stops) { return !are_due_ || run(stops); }

bool Evaluations::complete(Index steps_done, const engine::StopQuestion& stops) {
  std::optional<BegunEvaluations> found;
  grid::collectively(world_, [&] {
    if (world_.is_root()) found = mark_.read();
  });
  if (world_.max(found && found->step == steps_done ? 1 : 0) == 0) return true;
  std::string names;
  for (const std::string& name : found ? found->complete : std::vector<std::string>())
    names += name + '\n';
  begun_ = {steps_done};
  const std::string shared = world_.broadcast(names);
  for (std::size_t at = 0, end = 0; (end = shared.find('\n', at)) != std::string::npos;
       at = end + 1)
    begun_.complete.push_back(shared.substr(at, end - at));
  return run(stops);
}

/// Runs the due evaluations that are not complete, in the order of the deck. Removes the mark after
/// the last evaluation is reported.
bool Evaluations::run(const engine::StopQuestion& stops) {
  const auto add = [&](const std::string& name) {
    begun_.complete.push_back(name);
    ++completed_;
  };
  if (is_validation_due() && !is_complete(validation_name)) {
    if (!validate(stops)) return false;
    add(validation_name);
  }
  for (const data::EvaluationSet& set : dataset_.evaluations) {
    if (!is_due(set.every) || is_complete(name_of(set))) continue;
    if (!begun_.complete.empty()) mark(true);
    if (!evaluate(set, stops)) return false;
    add(name_of(set));
  }
  mark(false);
  return true;
}

bool Evaluations::is_complete(const std::string& name) const {
  return std::ranges::find(begun_.complete, name) != begun_.complete.end();
}

/// A failure to write the mark costs at most one evaluation, so it does not end the run.
void Evaluations::mark(bool is_begun) const {
  if (!world_.is_root()) return;
  try {
    if (is_begun) {
      mark_.write(begun_);
    } else {
      mark_.remove();
    }
  } catch (const Error& error) {
    std::cerr << "kzero: " << printable_lines(error.what()) << std::endl;
  }
}

void Evaluations::note_stopped(const std::string& what) {
  console_.note(fmt::format("{} stopped before its end{}", what,
                            config_.checkpoint.folder.empty() ? "" : "; a restart completes it"));
}

/// Returns the number of tokens that the first `count` samples predict.
Index Evaluations::tokens_of(const data::BatchSource& samples, Index count) const {
  return samples.targets(0, count).value_or(count * config_.model.sequence);
}

bool Evaluations::validate(const engine::StopQuestion& stops) {
  const auto begin = Clock::now();
  const Index batches = config_.train.validation_batches;
  const auto loss = engine_.evaluate_until(
      stops, batches * engine_.blueprint().phases.front().batches.micro_batches(),
      *dataset_.validation);
  if (!loss) {
    note_stopped(fmt::format("validation after step {}", begun_.step));
    return false;
  }
  metrics::ValidationRecord record;
  record.step = begun_.step;
  record.loss = *loss;
  record.tokens = tokens_of(*dataset_.validation, batches * config_.train.global_batch);
  record.seconds = seconds_since(begin);
  console_.validation(record);
  if (sink_ != nullptr) sink_->write(record);
  return true;
}

bool Evaluations::evaluate(const data::EvaluationSet& set, const engine::StopQuestion& stops) {
  const auto begin = Clock::now();
  const auto loss = engine_.evaluate_until(stops, set.micro_batches, *set.samples);
  if (!loss) {
    note_stopped(fmt::format("evaluation of {} after step {}", printable(set.name), begun_.step));
    return false;
  }
  metrics::EvaluationRecord record;
  record.name = set.name;
  record.step = begun_.step;
  record.loss = *loss;
  record.tokens = tokens_of(*set.samples, set.micro_batches * config_.train.micro_batch);
  record.seconds = seconds_since(begin);
  console_.evaluation(record);
  if (sink_ != nullptr) sink_->write(record);
  return true;
}

namespace fs = std::filesystem;

EvaluationMark::EvaluationMark(const std::string& folder)
    : path_(folder.empty() ? fs::path() : fs::path(folder) / evaluation_mark_name) {}

void EvaluationMark::write(const BegunEvaluations& begun) const {
  if (path_.empty()) return;
  std::string text = fmt::format("{}\n", begun.step);
  for (const std::string& name : begun.complete) text += name + '\n';
  storage::write_durably(path_, text);
}

void EvaluationMark::remove() const {
  if (path_.empty()) return;
  std::error_code error;
  fs::remove(path_, error);
  KZERO_REQUIRE(!error, ExitCode::files, "{}: cannot be removed ({})", path_.string(),
                error.message());
}

std::optional<BegunEvaluations> EvaluationMark::read() const {
  std::error_code ignored;
  if (path_.empty() || !fs::is_regular_file(path_, ignored)) return std::nullopt;
  constexpr Index max_bytes = Index{1} << 20;
  std::istringstream text(load_file(path_, max_bytes));
  std::string line;
  std::getline(text, line);
  BegunEvaluations begun;
  const char* end = line.data() + line.size();
  const auto [rest, error] = std::from_chars(line.data(), end, begun.step);
  if (error != std::errc{} || rest != end || begun.step < 0) return std::nullopt;
  while (std::getline(text, line)) begun.complete.push_back(line);
  return begun;
}

}  // namespace kzero::run
