#include "run/checkpoints.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <iostream>
#include <vector>

#include "base/checksum.hpp"
#include "base/printable.hpp"
#include "checkpoint/folder/origin.hpp"
#include "checkpoint/folder/retention.hpp"
#include "checkpoint/format/state_blocks.hpp"
#include "checkpoint/reader.hpp"
#include "deck/changes.hpp"
#include "engine/engine.hpp"
#include "engine/stored_weights.hpp"
#include "grid/agreement.hpp"
#include "optim/optimizer.hpp"
#include "run/loss_range.hpp"
#include "run/restart_rules.hpp"
#include "runtime/profile.hpp"
#include "runtime/wall_time.hpp"

namespace kzero::run {

using runtime::seconds_since;

namespace {

constexpr std::chrono::milliseconds time_of_a_look{100};

void print_problems(const std::vector<std::string>& problems) {
  for (const std::string& problem : problems)
    std::cerr << "kzero: " << printable_lines(problem) << '\n';
}

/// Clears all state arrays except the master weights. Returns shards that request only those.
std::vector<checkpoint::StateShard> without_optimizer_state(
    std::span<const checkpoint::StateShard> wanted) {
  std::vector<checkpoint::StateShard> weights(wanted.begin(), wanted.end());
  for (checkpoint::StateShard& shard : weights) {
    for (const checkpoint::StateValues& array : shard.arrays) {
      if (array.name != param::master_weights) checkpoint::clear(shard.staging, array);
    }
    std::erase_if(shard.arrays, [](const checkpoint::StateValues& array) {
      return array.name != param::master_weights;
    });
  }
  return weights;
}

/// Says that a run uses the weights of the checkpoint alone, and why. Empty if it does not.
std::string note_on_weights_alone(const checkpoint::Manifest& m, bool goes_on,
                                  std::string_view kind) {
  if (m.step == 0)
    return fmt::format("the checkpoint is of step 0: {} begins with its weights alone", kind);
  if (goes_on) return "";
  return fmt::format(
      "checkpoint.reset_optimizer: {} begins with the weights alone, the checkpoint is of {}", kind,
      m.optimizer);
}

/// Says what another size of batches does to the order of samples, from the first step that has it.
/// Empty if none has.
std::string batch_note(std::optional<Index> step, const data::BatchSizes& sizes) {
  if (!step) return "";
  return fmt::format(
      "batches have {} sequences from step {} on; their first sample is number {}, the next in the "
      "order, so none is repeated or left out",
      sizes.size(*step), *step, sizes.first_sample(*step));
}

/// `reasons` are those of bit_changes(), and `other_batch` is that of first_other_batch().
std::string bits_note(const std::vector<std::string>& reasons, std::optional<Index> other_batch) {
  if (!reasons.empty())
    return fmt::format("does not resume bit for bit: {}", fmt::join(reasons, "; "));
  return other_batch ? fmt::format(
                           "resumes bit for bit until step {}, which has the first batch of "
                           "another size than before",
                           *other_batch)
                     : std::string("resumes bit for bit");
}

/// Weights that a run has resumed are not those of another folder that its deck names now.
bool has_other_source(const checkpoint::Manifest& manifest, const deck::Model& now) {
  const auto saved = deck::recorded(manifest.deck);
  if (!saved) return false;
  const auto differ = [](const std::string& a, const std::string& b) {
    return !a.empty() && a != b;
  };
  return differ(now.initial, saved->model.initial) || differ(now.config, saved->model.config);
}

}  // namespace

std::unique_ptr<checkpoint::FolderLock> take_folder(const deck::Checkpoint& deck,
                                                    const grid::Group& world,
                                                    checkpoint::LockTimes times) {
  using Lock = std::unique_ptr<checkpoint::FolderLock>;
  std::future<Lock> lock;
  if (world.is_root() && !deck.folder.empty()) {
    lock = std::async(std::launch::async, [&]() -> Lock {
      checkpoint::require_folder_of_checkpoints(deck.folder);
      return std::make_unique<checkpoint::FolderLock>(
          deck.folder, [](const std::string& text) { print_problems({text}); },
          checkpoint::this_process(), times);
    });
  }
  // It takes two minutes to decide that an owner on another machine is dead. run.watchdog limits
  // each agreement, so the other ranks wait in many short ones.
  const auto is_open = [&] {
    return lock.valid() && lock.wait_for(time_of_a_look) != std::future_status::ready;
  };
  while (world.max(is_open() ? 1 : 0) == 1) {
  }
  Lock taken;
  grid::collectively(world, [&] {
    if (lock.valid()) taken = lock.get();
  });
  return taken;
}

std::string every_warning(const deck::Checkpoint& deck) {
  if (deck.every == 0 || !deck.folder.empty()) return "";
  return fmt::format(
      "warning     checkpoint.every = {} has no effect: checkpoint.folder is empty, so this run "
      "writes no checkpoints",
      deck.every);
}

Checkpoints::Checkpoints(const RunRequest& request, const grid::ProcessGrid& grid,
                         checkpoint::FolderLock* lock, const Provenance& provenance,
                         engine::Engine& engine, metrics::Console& console,
                         metrics::JsonlSink* sink)
    : config_(request.config),
      request_(request),
      grid_(grid),
      lock_(lock),
      provenance_(provenance),
      engine_(engine),
      console_(console),
      sink_(sink) {}

void Checkpoints::require_held_folder() {
  grid::collectively(grid_.world(), [&] {
    if (lock_ != nullptr) lock_->require_held();
  });
}

/// Refuses to start from step 0 in a folder with checkpoints, because the run would look like
/// their continuation.
void Checkpoints::require_no_checkpoints() const {
  const std::string& folder = config_.checkpoint.folder;
  grid::collectively(grid_.world(), [&] {
    if (!grid_.world().is_root()) return;
    const auto found = checkpoint::candidates(folder);
    KZERO_REQUIRE(found.empty(), ExitCode::usage,
                  "checkpoint.resume = false starts afresh, but {} is there, perhaps of another "
                  "run; choose another checkpoint.folder or move what {} holds away; with "
                  "checkpoint.resume = true the run resumes from it",
                  found.front().string(), folder);
  });
}

std::optional<checkpoint::Found> Checkpoints::newest(
    std::span<const checkpoint::StateShard> wanted) const {
  const deck::Checkpoint& deck = config_.checkpoint;
  if (!deck.resume) {
    require_no_checkpoints();
    return std::nullopt;
  }
  std::vector<std::string> problems;
  auto found =
      checkpoint::newest(grid_.world(), deck.folder, engine::saved_parameters, problems, wanted);
  if (grid_.world().is_root() && !(deck.strict && found)) {
    for (const std::string& problem : problems)
      std::cerr << "kzero: passed over: " << printable_lines(problem) << '\n';
  }
  grid::collectively(grid_.world(), [&] {
    KZERO_REQUIRE(
        found || problems.empty(), ExitCode::files,
        "{}: holds checkpoints, but none that can be used; to start afresh, move them away or "
        "choose another checkpoint.folder",
        deck.folder);
    KZERO_REQUIRE(!deck.strict || problems.empty(), ExitCode::files,
                  "{}\n(checkpoint.strict = false would resume from {})", fmt::join(problems, "\n"),
                  found->path.string());
  });
  return found;
}

/// Loads the complete state if the optimizer is the same, and only the master weights otherwise. In
/// the second case only the files are verified, not the hash of the complete state.
void Checkpoints::load(const checkpoint::Found& found,
                       std::span<const checkpoint::StateShard> wanted) {
  const checkpoint::Manifest& m = found.manifest;
  const bool goes_on = is_of_same_optimizer(found, engine_.blueprint());
  grid::collectively(grid_.world(), [&] {
    if (goes_on) {
      checkpoint::read(found, wanted);
      std::ranges::copy(m.reduced_state, engine_.reduced_state().begin());
    } else {
      checkpoint::read(found, without_optimizer_state(wanted));
    }
  });
  engine_.loaded();
  if (goes_on) checkpoint::require_saved_values(grid_.world(), found, engine_.owned_shards());
  engine_.start_optimizer_at(goes_on ? m.optimizer_start : m.step - m.skipped_steps);
  console_.note(note_on_weights_alone(m, goes_on, engine_.blueprint().optimizer->kind()));
}

std::optional<Index> Checkpoints::resume() {
  if (config_.checkpoint.folder.empty()) return std::nullopt;
  const auto begin = Clock::now();
  const std::vector<checkpoint::StateShard> wanted = engine_.local_shards();
  const auto found = newest(wanted);
  if (!found) return std::nullopt;
  const checkpoint::Manifest& m = found->manifest;
  grid::collectively(grid_.world(), [&] {
    require_same_training(*found, request_, engine_.blueprint(),
                          {provenance_.data_digest, engine_.base_hash()});
  });
  load(*found, wanted);
  const checkpoint::NormRecord norms = m.norms.value_or(checkpoint::NormRecord());
  engine_.scaler().restore(m.loss_scale, m.scale_good_steps, m.skipped_steps, m.skipped_in_row,
                           norms.skipped_in_row);
  engine_.spike_rule().restore(norms.norms, norms.skipped);
  engine_.batch_sizes().continue_at(m.step, m.samples);
  // The loss on different data has a different range.
  losses_ = LossRange(m.data_digest == provenance_.data_digest ? m.loss : std::nullopt);
  console_.note("resumed from " + found->path.string());
  warn_if_beyond_range(m.step);
  const std::vector<std::string> changes = deck::changes(m.deck, request_.deck);
  for (const std::string& change : changes) console_.note(change);
  const auto other_batch = first_other_batch(m, config_);
  console_.note(batch_note(other_batch, engine_.batch_sizes()));
  console_.note(rate_warning(m, config_));
  const auto reasons = bit_changes(m, changes, config_, provenance_);
  console_.note(bits_note(reasons, other_batch));
  resumed_ = {m.step, m.parameter_hash, reasons, has_other_source(m, config_.model)};
  saved_step_ = m.step;
  load_seconds_ = seconds_since(begin);
  return m.step;
}

checkpoint::Manifest Checkpoints::manifest_after(Index steps_done) const {
  const optim::LossScaler& scaler = engine_.scaler();
  checkpoint::Manifest m;
  m.deck = request_.deck;
  m.model = config_.model;
  if (deck::trains_adapters(config_.lora)) m.adapters = {config_.lora, engine_.base_hash()};
  m.data_ranks = grid_.data().size();
  m.tensor_ranks = grid_.tensor().size();
  m.stage = config_.zero.stage;
  m.precision = name_of(config_.train.precision);
  m.step = steps_done;
  m.samples = engine_.batch_sizes().first_sample(steps_done);
  m.tokens = m.samples * config_.model.sequence;
  m.loss_scale = scaler.scale();
  m.scale_good_steps = scaler.good_steps();
  m.skipped_steps = scaler.skipped();
  m.skipped_in_row = scaler.skipped_in_a_row();
  m.loss = losses_.record();
  if (const optim::SpikeRule& rule = engine_.spike_rule(); rule.is_on())
    m.norms = {rule.norms(), rule.skipped(), scaler.spikes_in_a_row()};
  m.arithmetic = provenance_.arithmetic;
  m.data_digest = provenance_.data_digest;
  m.optimizer = engine_.blueprint().optimizer->kind();
  m.optimizer_start = engine_.optimizer_start();
  m.state_arrays = engine_.blueprint().state_arrays();
  m.reduced_arrays = engine_.blueprint().optimizer->reduced_state();
  m.reduced_state.assign(engine_.reduced_state().begin(), engine_.reduced_state().end());
  m.parameters = checkpoint::parameters_of(engine_.blueprint().trained);
  return m;
}

void Checkpoints::keep_origin() {
  if (config_.checkpoint.folder.empty() || !request_.gather_origin) return;
  require_held_folder();
  grid::collectively(grid_.world(), [&] {
    if (!grid_.world().is_root()) return;
    try {
      checkpoint::Origin origin = request_.gather_origin();
      if (!origin.note.empty()) console_.note("note        " + origin.note);
      using enum checkpoint::Precedence;
      checkpoint::update_origin(config_.checkpoint.folder, std::move(origin),
                                resumed_ && resumed_->has_other_source ? of_folder : of_run);
    } catch (const Error& error) {  // the training needs none of these files
      console_.note(fmt::format("warning     not all files of the model are kept in {}/{}: {}",
                                config_.checkpoint.folder, checkpoint::origin_name, error.what()));
    }
  });
}

std::string Checkpoints::return_advice(Index steps_done) const {
  std::string text;
  grid::collectively(grid_.world(), [&] {
    if (grid_.world().is_root())
      text = run::return_advice(config_.checkpoint.folder, steps_done, losses_);
  });
  return grid_.world().broadcast(text);
}

void Checkpoints::warn_if_beyond_range(Index steps_done) const {
  if (config_.checkpoint.folder.empty() || !has_left_range(losses_, steps_done)) return;
  console_.note("warning     " + return_advice(steps_done));
}

/// checkpoint.keep = 1 keeps the newest checkpoint and the newest sane one. They become the same
/// checkpoint once a later step has a loss within the range. The older one is then removed before
/// the next write, so the disk never holds three.
void Checkpoints::make_room(Index steps_done) const {
  const deck::Checkpoint& deck = config_.checkpoint;
  if (!losses_.record()) return;
  grid::collectively(grid_.world(), [&] {
    std::error_code ignored;
    if (!grid_.world().is_root() || !std::filesystem::exists(deck.folder, ignored)) return;
    print_problems(checkpoint::retain(deck.folder, steps_done - 1, {1, deck.keep_every},
                                      losses_.record()->sane_step));
  });
}

void Checkpoints::save(Index steps_done) {
  const deck::Checkpoint& deck = config_.checkpoint;
  if (deck.folder.empty() || saved_step_ == steps_done) return;
  if (is_incomplete_) complete();
  require_held_folder();
  const runtime::ProfileRegion region([] { return "kzero::run::save_checkpoint"; }, SpanKind::file);
  begun_ = Clock::now();
  release_background_write();
  if (deck.keep == 1) make_room(steps_done);
  saved_step_ = steps_done;
  is_due_ = false;
  if (deck.asynchronous) {
    under_way_.emplace(grid_.world(), deck.folder, manifest_after(steps_done), engine_.snapshot(),
                       checkpoint::Keep(deck.keep, deck.keep_every));
    is_incomplete_ = true;
    stalled_ = seconds_since(begun_);
  } else {
    const auto written = checkpoint::write(grid_.world(), deck.folder, manifest_after(steps_done),
                                           engine_.owned_shards(), {deck.keep, deck.keep_every},
                                           deck.ranks_per_file);
    stalled_ = seconds_since(begun_);
    report(written, stalled_);
  }
}

void Checkpoints::save_if_due(Index steps_done) {
  const Index every = config_.checkpoint.every;
  is_due_ = is_due_ || (every > 0 && steps_done % every == 0);
  if (is_due_ && engine_.scaler().skipped_in_a_row() == 0) save(steps_done);
}

void Checkpoints::save_result(Index steps_done) {
  const Index good_step = steps_done - engine_.scaler().skipped_in_a_row();
  if (good_step > std::max<Index>(saved_step_, 0)) save(steps_done);
}

void Checkpoints::require_newer_than(Index first_step) const {
  if (config_.checkpoint.folder.empty() || saved_step_ > first_step) return;
  throw grid::AgreedError(
      ExitCode::other,
      fmt::format("stopped without a checkpoint newer than step {}, from which it began; the same "
                  "command would make no progress",
                  first_step));
}

void Checkpoints::poll() {
  if (is_incomplete_ && grid_.world().min(under_way_->ready() ? 1 : 0) == 1) complete();
}

void Checkpoints::complete() {
  const auto waiting = Clock::now();
  is_incomplete_ = false;
  const auto written = under_way_->finish();
  stalled_ += seconds_since(waiting);
  report(written, seconds_since(begun_));
}

void Checkpoints::release_background_write() {
  if (under_way_) print_problems(under_way_->tidied());
  under_way_.reset();
}

void Checkpoints::finish() {
  if (is_incomplete_) complete();
  release_background_write();
}

void Checkpoints::report(const checkpoint::Written& written, double seconds) const {
  print_problems(written.problems);
  const metrics::CheckpointRecord record{saved_step_,   written.path.string(),
                                         written.bytes, seconds,
                                         stalled_,      format_checksum(written.parameter_hash)};
  console_.checkpoint(record);
  if (sink_ != nullptr) sink_->write(record);
}

}  // namespace kzero::run
