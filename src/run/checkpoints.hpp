// The checkpoints of a run: the one that it resumes, those that it saves, and the background write
// between two steps.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "checkpoint/folder/lock.hpp"
#include "checkpoint/folder/search.hpp"
#include "checkpoint/writer.hpp"
#include "engine/engine.hpp"
#include "grid/process_grid.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "run/bits.hpp"
#include "run/loss_range.hpp"
#include "run/trainer.hpp"

namespace kzero::engine {
class Engine;
}

namespace kzero::run {

/// Locks the deck's checkpoint folder for this run. The root gets the lock. Other ranks get null,
/// as does the root if the deck has no folder. Throws Error(files) if another run holds the folder,
/// and Error(usage) if the folder is itself a checkpoint. It takes times.silence to decide that an
/// owner on another machine is dead. Each single wait for another rank is shorter. Collective over
/// `world`.
std::unique_ptr<checkpoint::FolderLock> take_folder(const deck::Checkpoint& deck,
                                                    const grid::Group& world,
                                                    checkpoint::LockTimes times = {});

/// Returns a warning if the deck has a number of steps between checkpoints but no folder for them.
/// Empty otherwise.
std::string every_warning(const deck::Checkpoint& deck);

/// The checkpoint that a run resumes.
struct Resumed {
  Index step = 0;                          // steps done
  std::uint64_t state = 0;                 // the hash of its state
  std::vector<std::string> bit_changes{};  // what keeps the run from resuming bit for bit
  bool has_other_source = false;           // the deck names another model than the checkpoint's
};

class Checkpoints {
 public:
  /// `lock` is the result of take_folder(); `sink` is null if nothing is recorded. All arguments
  /// must outlive the object.
  Checkpoints(const RunRequest& request, const grid::ProcessGrid& grid,
              checkpoint::FolderLock* lock, const Provenance& provenance, engine::Engine& engine,
              metrics::Console& console, metrics::JsonlSink* sink);

  /// Loads the newest good checkpoint if there is one and the deck asks for it. Returns the steps
  /// done. Throws Error(usage) if the deck's training cannot continue from it. With
  /// checkpoint.resume = false, throws Error(usage) if the folder contains any checkpoint.
  /// Collective over all ranks, like all functions below.
  std::optional<Index> resume();

  /// The checkpoint that resume() loaded, if any. Not collective.
  const std::optional<Resumed>& resumed() const { return resumed_; }
  double load_seconds() const { return load_seconds_; }

  /// Keeps what the model brings in the folder of checkpoints. Call it before the first save.
  void keep_origin();

  /// Records the loss of a step. Steps are numbered from 0. Not collective.
  void add_loss(Index step, const engine::StepResult& result) {
    if (result.is_empty()) {
      losses_.add_without_loss(step);
    } else {
      losses_.add(step, result.loss);
    }
  }

  /// Returns the text of run::return_advice() on every rank.
  std::string return_advice(Index steps_done) const;

  /// Prints a warning if the loss of the last step is beyond its range.
  void warn_if_beyond_range(Index steps_done) const;

  /// Saves the state after this many steps unless it is already saved. Waits first for an earlier
  /// write in flight. With checkpoint.asynchronous, copies the state and returns. A background
  /// thread then writes it and removes old checkpoints.
  void save(Index steps_done);

  /// Saves if checkpoint.every makes a checkpoint due now or has done so since the last save. A due
  /// checkpoint waits for a step with finite gradients, because a diverging training must not
  /// displace good checkpoints.
  void save_if_due(Index steps_done);

  /// Saves the final state of a training unless every step since the last checkpoint was skipped.
  void save_result(Index steps_done);

  /// Throws Error(other) unless a checkpoint newer than `first_step` was saved or there is no
  /// checkpoint folder. A job that is resubmitted without progress would run for ever. Not
  /// collective.
  void require_newer_than(Index first_step) const;

  /// Completes the background checkpoint if all ranks have written their parts. Call it once per
  /// step.
  void poll();

  /// Waits for the write in flight and completes it.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<checkpoint::Found> newest(std::span<const checkpoint::StateShard> wanted) const;
  void load(const checkpoint::Found& found, std::span<const checkpoint::StateShard> wanted);
  void require_held_folder();
  void make_room(Index steps_done) const;
  void require_no_checkpoints() const;
  checkpoint::Manifest manifest_after(Index steps_done) const;
  void complete();
  void release_background_write();
  void report(const checkpoint::Written& written, double seconds) const;

  const deck::Config& config_;
  const RunRequest& request_;
  const grid::ProcessGrid& grid_;
  checkpoint::FolderLock* lock_;
  const Provenance provenance_;
  engine::Engine& engine_;
  metrics::Console& console_;
  metrics::JsonlSink* sink_;
  LossRange losses_;
  double load_seconds_ = 0;
  std::optional<Resumed> resumed_;
  Index saved_step_ = -1;      // step of the newest checkpoint written, begun or loaded
  bool is_due_ = false;        // a save waits for a step with finite gradients
  Clock::time_point begun_{};  // start of the newest write
  double stalled_ = 0;         // seconds that training waited for that write
  std::optional<checkpoint::BackgroundWrite> under_way_;  // of saved_step_
  bool is_incomplete_ =
      false;  // the write is in flight; false while only old checkpoints are being removed
};

}  // namespace kzero::run
