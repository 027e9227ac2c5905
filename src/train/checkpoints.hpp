// The checkpoints of a run: where it begins, what it leaves behind, and what is under way between
// two steps.
#pragma once

#include <chrono>
#include <optional>
#include <span>

#include "checkpoint/search.hpp"
#include "checkpoint/writer.hpp"
#include "grid/process_grid.hpp"
#include "metrics/console.hpp"
#include "metrics/jsonl_sink.hpp"
#include "train/trainer.hpp"

namespace kzero::train {

class Checkpoints {
 public:
  /// `sink` is null where nothing is recorded. All arguments must outlive the object.
  Checkpoints(const RunRequest& request, const grid::ProcessGrid& grid, std::uint64_t data_digest,
              Engine& engine, metrics::Console& console, metrics::JsonlSink* sink);

  /// Loads the newest good checkpoint, if there is one and the deck asks for it; returns the steps
  /// done. Collective over all ranks, as all below.
  std::optional<Index> resume();

  /// What resume() took where it found something.
  double load_seconds() const { return load_seconds_; }

  /// Saves the state after so many steps, unless it is saved. With checkpoint.asynchronous the
  /// state is copied, and writing and the removal of old checkpoints go on in the background; what
  /// is still under way is waited for first.
  void save(Index steps_done);

  /// Completes what the background has written on all ranks by now. To be called once a step.
  void poll();

  /// Waits for what is under way, and completes it.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  std::optional<checkpoint::Found> newest(std::span<const checkpoint::Piece> wanted) const;
  void require_same_data(const checkpoint::Found& found) const;
  checkpoint::Manifest manifest_after(Index steps_done) const;
  void complete();
  void settle();
  void report(const checkpoint::Written& written, double seconds) const;

  const deck::Config& config_;
  const RunRequest& request_;
  const grid::ProcessGrid& grid_;
  std::uint64_t data_digest_;
  Engine& engine_;
  metrics::Console& console_;
  metrics::JsonlSink* sink_;
  double load_seconds_ = 0;
  Index saved_step_ = -1;      // of the newest checkpoint written, begun or loaded
  Clock::time_point begun_{};  // of the newest write
  double stalled_ = 0;         // seconds that training waited for it
  std::optional<checkpoint::BackgroundWrite> under_way_;  // of saved_step_
  bool is_incomplete_ = false;  // what is under way, rather than the removal of others
};

}  // namespace kzero::train
