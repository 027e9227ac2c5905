// The checkpoints of a run: the one that it resumes from, those that it saves, and the background
// write between two steps.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>

#include "checkpoint/folder/lock.hpp"
#include "checkpoint/folder/search.hpp"
#include "checkpoint/writer.hpp"
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

/// Locks the deck's checkpoint folder for this run. Returns the lock on the root, and null
/// elsewhere or without a folder. Throws Error(files) if another run holds the lock, and
/// Error(usage) if the folder is itself a checkpoint. Deciding whether an owner on another machine
/// is dead takes times.silence, but no single wait for a rank lasts that long. Collective over
/// `world`.
std::unique_ptr<checkpoint::FolderLock> take_folder(const deck::Checkpoint& deck,
                                                    const grid::Group& world,
                                                    checkpoint::LockTimes times = {});

/// The checkpoint from which a run resumes.
struct Resumed {
  Index step = 0;                          // steps done
  std::uint64_t state = 0;                 // hash of its state
  std::vector<std::string> bit_changes{};  // reasons why the run does not resume bit for bit
};

class Checkpoints {
 public:
  /// `lock` is the result of take_folder(). `sink` is null if nothing is recorded. All arguments
  /// must outlive the object.
  Checkpoints(const RunRequest& request, const grid::ProcessGrid& grid,
              checkpoint::FolderLock* lock, const Provenance& provenance, engine::Engine& engine,
              metrics::Console& console, metrics::JsonlSink* sink);

  /// Loads the newest good checkpoint, if there is one and the deck asks for it, and returns its
  /// steps. Throws Error(usage) if the deck's training cannot continue from it, or, with
  /// checkpoint.resume = false, if there is any. Collective over all ranks, like all functions
  /// below.
  std::optional<Index> resume();

  /// The checkpoint that resume() loaded, if any. Not collective.
  const std::optional<Resumed>& resumed() const { return resumed_; }
  double load_seconds() const { return load_seconds_; }

  /// Records the loss of a step, numbered from 0. Not collective.
  void add_loss(Index step, double loss) { losses_.add(step, loss); }

  /// Returns way_back() on every rank.
  std::string way_back(Index steps_done) const;

  /// Warns if the run ends with a loss beyond its range.
  void warn_if_beyond_range(Index steps_done) const;

  /// Saves the state after this many steps, unless it is saved. Waits for a write in flight first.
  /// With checkpoint.asynchronous, copies the state, and writes it and removes old checkpoints in
  /// the background.
  void save(Index steps_done);

  /// Saves if a checkpoint is due by checkpoint.every, or has been since the last save. A due
  /// checkpoint waits for finite gradients, because a diverging run must not displace good
  /// checkpoints.
  void save_if_due(Index steps_done);

  /// Saves the final state, unless all steps since the last checkpoint were skipped.
  void save_result(Index steps_done);

  /// Throws Error(other) unless a checkpoint newer than `first_step` was saved. Without one, a
  /// resubmitted job would run forever. Not collective.
  void require_newer_than(Index first_step) const;

  /// Completes the background checkpoint if all ranks have written it. Call this once per step.
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
  Index saved_step_ = -1;      // of the newest checkpoint written, started or loaded
  bool is_due_ = false;        // a save waits for a step with finite gradients
  Clock::time_point begun_{};  // of the newest write
  double stalled_ = 0;         // seconds that training waited for the newest write
  std::optional<checkpoint::BackgroundWrite> under_way_;  // of saved_step_
  bool is_incomplete_ = false;  // a write is in flight, not just the removal of old checkpoints
};

}  // namespace kzero::run
