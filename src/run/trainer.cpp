#include "run/trainer.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <optional>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "base/version.hpp"
#include "comm/failure.hpp"
#include "comm/launch_watch.hpp"
#include "comm/placement.hpp"
#include "deck/config.hpp"
#include "engine/arithmetic.hpp"
#include "engine/engine.hpp"
#include "engine/expected_traffic.hpp"
#include "engine/memory_report.hpp"
#include "engine/sums_place.hpp"
#include "engine/weights_hash.hpp"
#include "grid/agreement.hpp"
#include "grid/process_grid.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "metrics/meters.hpp"
#include "run/algorithms.hpp"
#include "run/bits.hpp"
#include "run/checkpoints.hpp"
#include "run/ending.hpp"
#include "run/energy.hpp"
#include "run/evaluations.hpp"
#include "run/node_times.hpp"
#include "run/profile.hpp"
#include "run/replay.hpp"
#include "run/start_report.hpp"
#include "runtime/build_facts.hpp"
#include "runtime/host_name.hpp"
#include "runtime/signals.hpp"
#include "runtime/stop_signal.hpp"
#include "runtime/wall_time.hpp"
#include "tensor/view.hpp"

namespace kzero::run {

namespace {

using runtime::seconds_since;
using Clock = std::chrono::steady_clock;

/// Returns the display of the run on rank 0; every other rank is silent.
metrics::Screen screen_of(deck::ProgressStyle style, Index rank) {
  switch (style) {
    case deck::ProgressStyle::live:
      return metrics::live_screen(rank);
    case deck::ProgressStyle::plain:
      return metrics::plain_screen(rank);
    case deck::ProgressStyle::automatic:
      break;
  }
  return metrics::found_screen(rank);
}

/// The parts of a run, in the order of their construction.
class Trainer {
 public:
  Trainer(const RunRequest& request, const runtime::Session& session);
  /// Runs the training. Call it once. An exception on only this rank must not destroy the members,
  /// because their destructors may need the other ranks.
  ExitCode train();

 private:
  void prepare();
  ExitCode run_steps();
  void require_reference() const;
  Index begin();
  std::optional<runtime::Deadline> deadline() const;
  runtime::StopRules stop_rules() const;
  void require_no_stop_file() const;
  std::vector<std::string> notes(Index first_step) const;
  std::vector<metrics::StepTokens> phases() const;
  std::vector<metrics::TrafficRow> expected_traffic(Index step) const;
  void announce(Index first_step);
  void report(Index step, const engine::StepResult& result, double seconds);
  std::optional<Ending> evaluate(Index steps_done, bool is_restart = false);
  Ending make_steps(Index first_step, Index& done, Replay& replay);
  void require_progress(const Ending& ending, Index first_step, Index done) const;
  ExitCode finish(const Ending& ending, Index steps_done);

  const deck::Config& config_;
  const RunRequest& request_;
  const runtime::Session& session_;
  Clock::time_point started_ = Clock::now();
  grid::ProcessGrid grid_;
  comm::LaunchWatch watch_;
  metrics::Console console_;
  std::optional<runtime::Deadline> deadline_;
  runtime::StopSignal stop_;
  std::unique_ptr<checkpoint::FolderLock> folder_lock_;  // on rank 0
  std::optional<metrics::JsonlSink> sink_;               // on rank 0
  EnergyMeter energy_;
  const RunInputs inputs_;
  std::optional<engine::Machinery> machinery_;
  std::string arithmetic_, bits_;  // bits_digest(), as text
  Index resident_at_start_ = 0;    // before the engine allocates memory
  std::unique_ptr<engine::Engine> engine_;
  std::vector<Index> steps_of_phases_;  // with targets, of this job
  metrics::Peak peak_;
  metrics::Throughput throughput_;
  double tokens_ = 0;  // of this job's steps
  std::optional<Checkpoints> checkpoints_;
  std::optional<Evaluations> evaluations_;
  std::optional<NodeTimes> node_times_;
  std::optional<StopAgreement> stops_;
  std::optional<Profile> profile_;  // with run.profile
};

Trainer::Trainer(const RunRequest& request, const runtime::Session& session)
    : config_(request.config),
      request_(request),
      session_(session),
      grid_(config_.grid.data, config_.grid.tensor, config_.placement.node_of_rank,
            config_.grid.sequence),
      watch_(session, grid_.world(), config_.run.watchdog, config_.run.heartbeat),
      console_(std::cout, screen_of(config_.run.progress, session.rank()), config_.run.log_every,
               request.detail),
      deadline_(deadline()),
      stop_(stop_rules()),
      energy_(grid_.world()),
      inputs_(request.open_inputs(config_, grid_.world())) {}

void Trainer::prepare() {
  engine::Blueprint blueprint(config_, grid_.data().size(), engine::tensor_rank(grid_));
  folder_lock_ = take_folder(config_.checkpoint, grid_.world());  // before any file is touched
  grid::collectively(grid_.world(), [&] {
    require_no_stop_file();
    engine::require_memory(engine::planned_bytes(config_, blueprint, session_.threads()),
                           session_.node_size(),
                           "more nodes, a higher zero.stage, a smaller train.micro_batch or 16-bit "
                           "train.precision");
  });
  machinery_.emplace(config_, session_.threads(), grid_);
  grid::collectively(grid_.world(), [&] {
    if (session_.rank() == 0) {
      sink_.emplace(config_.run.metrics);
      remove_end_file(config_);
    }
  });
  resident_at_start_ = metrics::resident_peak_bytes();
  grid::collectively(grid_.world(), [&] {
    engine_ = engine::make_engine(config_, std::move(blueprint), *machinery_);
  });
  steps_of_phases_.resize(engine_->blueprint().phases.size());
  peak_ = engine::find_peak(config_, grid_.world(), *machinery_->gemm);
  throughput_ = {model::flops_per_token(engine_->blueprint().training.trace()),
                 peak_.flops_per_second};
  use_algorithms(config_.run, inputs_.algorithms, grid_.world(), *machinery_->gemm);
  arithmetic_ = engine::arithmetic_of(*machinery_->gemm, engine_->model_arithmetic().name);
  const Provenance provenance{inputs_.dataset.training_digest(), arithmetic_};
  bits_ = format_checksum(bits_digest(request_.deck, config_, provenance));
  checkpoints_.emplace(request_, grid_, folder_lock_.get(), provenance, *engine_, console_,
                       sink_ ? &*sink_ : nullptr);
  evaluations_.emplace(config_, grid_.world(), inputs_.dataset, *engine_, console_,
                       sink_ ? &*sink_ : nullptr);
  node_times_.emplace(config_, *machinery_, engine_->blueprint(), console_,
                      sink_ ? &*sink_ : nullptr, MinInterval{}, &energy_);
  stops_.emplace(config_.run, grid_.world(), stop_, *node_times_);
  if (!config_.run.profile.empty())
    profile_.emplace(config_.run, grid_.world(), engine_->spans(), console_);
}

std::optional<runtime::Deadline> Trainer::deadline() const {
  std::optional<runtime::Deadline> found;
  grid::collectively(grid_.world(),
                     [&] { found = runtime::find_deadline(config_.run.wall_limit); });
  return found;
}

/// An early stop helps only if a checkpoint can be written. Without a checkpoint folder the run
/// continues as far as it can. Only one rank checks the file, to spare the file system.
runtime::StopRules Trainer::stop_rules() const {
  runtime::StopRules rules;
  if (deadline_ && !config_.checkpoint.folder.empty())
    rules.after = deadline_->seconds - config_.run.stop_margin;
  if (session_.rank() == 0) rules.file = config_.run.stop_file;
  return rules;
}

void Trainer::require_no_stop_file() const {
  KZERO_REQUIRE(!stop_.has_file(), ExitCode::usage,
                "run.stop_file: {} exists, so the run would stop after one step; remove it first",
                config_.run.stop_file);
}

/// Refuses log-probabilities of another model than the one that the training begins with.
void Trainer::require_reference() const {
  if (!inputs_.dataset.reference_model) return;
  const std::uint64_t hash = engine::weights_hash(grid_.world(), config_, inputs_.initial);
  if (hash == *inputs_.dataset.reference_model) return;
  throw grid::AgreedError(
      ExitCode::usage,
      fmt::format(
          "preference.reference = \"{}\": has log-probabilities of weights with hash {}, but "
          "those of model.initial = \"{}\" have hash {}; write it again with `kzero evaluate`",
          config_.preference.reference, format_checksum(*inputs_.dataset.reference_model),
          config_.model.initial, format_checksum(hash)));
}

Index Trainer::begin() {
  require_reference();
  // A checkpoint of adapters has no frozen weights.
  const bool has_base = deck::trains_adapters(config_.lora);
  if (has_base) {
    engine_->initialise(inputs_.initial, inputs_.adapters);
    require_base(inputs_, config_, engine_->base_hash());
  }
  if (const auto step = checkpoints_->resume()) return *step;
  if (!has_base) engine_->initialise(inputs_.initial);
  return 0;
}

std::vector<std::string> Trainer::notes(Index first_step) const {
  std::vector<std::string> all = engine::node_notes(config_, engine_->blueprint());
  all.push_back(comm::communicator_note(config_));
  if (first_step == 0) {
    all.push_back(inputs_.initial_note);
    all.push_back(inputs_.export_note);
  }
  std::erase(all, "");
  return all;
}

/// Returns the phases of the run if it has several.
std::vector<metrics::StepTokens> Trainer::phases() const {
  std::vector<metrics::StepTokens> found;
  const std::vector<data::Phase>& all = engine_->batch_sizes().phases();
  found.reserve(all.size());
  for (const data::Phase& phase : all)
    found.push_back({phase.first_step, phase.size * config_.model.sequence});
  return all.size() > 1 ? found : std::vector<metrics::StepTokens>();
}

/// Returns the expected traffic of a step, as the mean over the steps of this job so far; before
/// the first, of step `step`.
std::vector<metrics::TrafficRow> Trainer::expected_traffic(Index step) const {
  std::vector<Index> steps = steps_of_phases_;
  if (std::ranges::all_of(steps, [](Index count) { return count == 0; }))
    steps[engine_->batch_sizes().phase_of(step)] = 1;
  return engine::expected_traffic(config_, engine_->blueprint(), steps, grid_.data().rank());
}

void Trainer::announce(Index first_step) {
  metrics::StartRecord record;
  record.versions = runtime::build_facts();
  record.git_hash = git_hash();
  record.hosts = grid_.world().gather(runtime::host_name());
  record.deck_file = request_.deck_file;
  record.deck = request_.deck;
  record.data_ranks = grid_.data().size();
  record.tensor_ranks = grid_.tensor().size();
  record.sequence_ranks = grid_.sequence().size();
  record.threads = session_.threads();
  record.stage = config_.zero.stage;
  record.precision = name_of(config_.train.precision);
  record.parameters = param::elements_of(engine_->blueprint().table);
  record.steps = config_.train.steps;
  record.first_step = first_step;
  record.load_seconds = checkpoints_->load_seconds();
  record.process_seconds = runtime::process_seconds();
  record.tokens_per_step = engine_->batch_sizes().size(first_step) * config_.model.sequence;
  record.phases = phases();
  if (deadline_ && !config_.checkpoint.folder.empty()) {
    record.limit = {std::string(deadline_->source), deadline_->seconds - runtime::process_seconds(),
                    config_.run.stop_margin};
  }
  record.peak = peak_;
  record.data = summary_of(config_, inputs_.dataset,
                           engine_->batch_sizes().first_sample(config_.train.steps));
  record.bits_depend_on = bits_depend_on(config_, arithmetic_);
  record.bits = bits_;
  if (const auto& from = checkpoints_->resumed()) record.state = format_checksum(from->state);
  record.planned_memory = engine::categories(engine_->planned(), {});
  record.planned_traffic = expected_traffic(first_step);
  console_.start(record);
  for (const std::string& line : group_lines(config_.optimizer, engine_->blueprint().table))
    console_.note(line);
  console_.note(base_width_line(config_, engine_->blueprint().table));
  if (config_.zero.offload == deck::Offload::host && tensor::on_host)
    console_.note("zero.offload: this build computes on the host, where the state is already");
  if (deadline_ && !runtime::knows_process_start())
    console_.note("the kernel does not tell when the process began; times count from the start");
  if (deadline_ && !record.limit)
    console_.note(fmt::format("{} is not heeded: checkpoint.folder is empty", deadline_->source));
  console_.note(every_warning(config_.checkpoint));
  for (const std::string& text : data_warnings(config_, inputs_.dataset)) console_.note(text);
  if (const std::string note = engine_->model_arithmetic().note; !note.empty())
    console_.note("attention   kzero's kernels: " + note);
  if (deck::trains_adapters(config_.lora)) console_.note(adapters_note(engine_->blueprint()));
  console_.note(energy_.note());
  if (profile_) console_.note(profile_->announcement(first_step));
  for (const std::string& note : notes(first_step)) console_.note("note        " + note);
  for (const std::string& text : grid_.world().gather(comm::crowding(session_))) {
    if (text.empty()) continue;
    console_.note("warning     " + text);
    break;  // the other nodes are alike
  }
  if (!sink_) return;
  sink_->write(record);
  if (!sink_->old_name().empty())
    console_.note("an earlier run's metrics are now in " + sink_->old_name());
}

void Trainer::report(Index step, const engine::StepResult& result, double seconds) {
  metrics::StepRecord record;
  record.step = step;
  record.loss = result.loss;
  record.grad_norm = result.grad_norm;
  record.lr = result.lr;
  record.tokens = engine_->batch_sizes().size(step) * config_.model.sequence;
  record.seconds = seconds;
  record.loss_scale = result.loss_scale;
  record.skipped = result.skipped;
  record.targets = result.targets;
  record.norm_limit = result.norm_limit;
  record.experts = metrics::expert_load(result.expert_choices, config_.model.layers);
  if (const auto& pairs = result.preference)
    record.preference = {pairs->pairs, pairs->chosen_reward, pairs->rejected_reward,
                         pairs->accuracy};
  if (const auto& distill = result.distill) record.distill = {distill->cross_entropy, distill->kl};
  throughput_.fill(record);
  tokens_ += static_cast<double>(record.tokens);
  console_.step(record);
  if (sink_) sink_->write(record);
}

/// Runs the evaluations due after this many steps. After a restart, runs those that an earlier job
/// left incomplete. Returns the reason if the run is stopped within them. Also completes a
/// background checkpoint.
std::optional<Ending> Trainer::evaluate(Index steps_done, bool is_restart) {
  std::optional<Ending> found;
  const auto stops = [&] {
    if (!stops_->is_due_within_evaluation()) return false;
    checkpoints_->poll();
    found = stops_->within_evaluation();
    return found.has_value();
  };
  const bool is_complete =
      is_restart ? evaluations_->complete(steps_done, stops) : evaluations_->run_if_due(stops);
  return is_complete ? std::nullopt : found;
}

/// Writes the end file and the closing reports, and returns the exit code. The end file is first,
/// because a stopping run may be killed while it prints.
ExitCode Trainer::finish(const Ending& ending, Index steps_done) {
  const bool saves = !config_.checkpoint.folder.empty();
  const ExitCode code = ending.failure         ? *ending.failure
                        : ending.is_complete() ? ExitCode::done
                        : saves                ? ExitCode::stopped
                                               : ExitCode::other;
  metrics::EndRecord record;
  record.reason = ending.reason;
  record.signal = runtime::signal_name(ending.signal);
  record.exit_code = static_cast<Index>(code);
  record.steps = steps_done;
  record.seconds = seconds_since(started_);
  if (const auto& rule = engine_->spike_rule(); rule.is_on()) record.spikes = rule.skipped();
  if (sink_) write_end_file(record, config_);
  if (!ending.failure) checkpoints_->warn_if_beyond_range(steps_done);
  if (profile_) profile_->finish();
  node_times_->finish(steps_done);
  record.memory = engine::memory_rows(grid_.world(), engine_->planned(), machinery_->ledger.peaks(),
                                      resident_at_start_);
  record.traffic = engine::counted(machinery_->traffic, expected_traffic(steps_done));
  record.energy = energy_.total(tokens_, seconds_since(started_));
  console_.end(record);
  if (sink_) sink_->write(record);
  if (code == ExitCode::stopped) console_.note(stop_text(record, config_));
  grid_.world().barrier();  // a rank that exits early may end the others
  if (code == ExitCode::other && !ending.failure)
    throw grid::AgreedError(code, stop_text(record, config_));
  return code;
}

/// Runs the steps from first_step, counts them in `done`, and returns why it ends. A due checkpoint
/// is saved before the evaluations of its step. The evaluations may take longer than a stopping job
/// has left.
Ending Trainer::make_steps(Index first_step, Index& done, Replay& replay) {
  const Index steps = config_.train.steps;
  if (!checkpoints_->resumed() && !config_.model.initial.empty()) evaluations_->mark_before_steps();
  if (auto stopped = evaluate(done, checkpoints_->resumed().has_value())) return *stopped;
  if (done >= steps) return {evaluations_->completed() > 0 ? "completed" : "nothing_to_do"};
  while (true) {
    if (profile_) profile_->before_step(done);
    const auto begin = Clock::now();
    const engine::StepResult result =
        node_times_->step([&] { return engine_->step(done, *inputs_.dataset.training); });
    if (!result.is_empty()) ++steps_of_phases_[engine_->batch_sizes().phase_of(done)];
    report(done, result, seconds_since(begin));
    checkpoints_->add_loss(done, result);
    replay.compare(done, result);
    if (done == first_step) console_.note(algorithms_note(config_.run, *machinery_->gemm));
    ++done;
    checkpoints_->poll();
    engine_->scaler().require_progress();
    evaluations_->mark_if_due(done);
    if (done < steps) {
      checkpoints_->save_if_due(done);
    } else {
      checkpoints_->save_result(done);
    }
    if (auto stopped = evaluate(done)) return *stopped;
    if (done >= steps) return {};
    if (auto stopped = stops_->after_step(done - first_step)) return *stopped;
    node_times_->report_if_due(done);
  }
}

/// Throws if the same command would stop at the same place again. A signal may come at any moment,
/// so a run that a signal stops before its first step is exempt.
void Trainer::require_progress(const Ending& ending, Index first_step, Index done) const {
  if (ending.is_complete() || evaluations_->completed() > 0) return;
  if (done == first_step && ending.reason == "signal") return;
  checkpoints_->require_newer_than(first_step);
}

ExitCode Trainer::run_steps() {
  const Index first_step = begin();
  Replay replay(config_, grid_.world(), checkpoints_->resumed(), bits_, console_);
  announce(first_step);
  checkpoints_->keep_origin();
  Index done = first_step;
  Ending ending;
  try {
    ending = make_steps(first_step, done, replay);
    if (done < config_.train.steps) {
      checkpoints_->save(done);
    } else {
      engine_->scaler().require_good_end();
    }
  } catch (const Error& error) {
    const auto* mismatch = dynamic_cast<const engine::Mismatch*>(&error);
    if (mismatch == nullptr && error.code() != ExitCode::diverged) throw;
    checkpoints_->finish();
    finish({mismatch != nullptr ? mismatch->reason() : "diverged", 0, error.code()}, done);
    std::string text = error.what();  // every rank threw the same
    const std::string back = mismatch == nullptr ? checkpoints_->return_advice(done) : "";
    if (!back.empty()) text += '\n' + back;
    throw grid::AgreedError(error.code(), text);
  }
  checkpoints_->finish();
  require_progress(ending, first_step, done);
  return finish(ending, done);
}

ExitCode Trainer::train() {
  return comm::ending_launch_on_failure([this] {
    prepare();
    const ExitCode code = run_steps();
    folder_lock_.reset();
    return code;
  });
}

}  // namespace

void require_base(const RunInputs& inputs, const deck::Config& config, std::uint64_t hash) {
  const std::string found = format_checksum(hash);
  if (inputs.adapters_base.empty() || inputs.adapters_base == found) return;
  throw grid::AgreedError(
      ExitCode::usage,
      fmt::format("lora.initial = \"{}\": its adapters were trained on weights of hash {}, but "
                  "those of model.initial = \"{}\" have hash {}; set model.initial to the weights "
                  "that they were trained on",
                  config.lora.initial, printable(inputs.adapters_base), config.model.initial,
                  found));
}

ExitCode train(const RunRequest& request, const runtime::Session& session) {
  return Trainer(request, session).train();
}

}  // namespace kzero::run
