// Numbers derived during a run: rates of a step, a steady step time for "time left", and the
// resident memory of the process. It is independent of the output.
#pragma once

#include <array>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/types.hpp"
#include "metrics/records.hpp"

namespace kzero::metrics {

/// The peak speed from which the model FLOPs utilization (MFU) is computed.
struct Throughput {
  double flops_per_token = 0;   // of training: forward and backward
  double flops_per_second = 0;  // peak of all ranks; 0: unknown, then mfu is 0

  /// Fills tokens_per_second and mfu from tokens and seconds.
  void fill(StepRecord& record) const;
};

/// The median of the last values. One slow step (a checkpoint, a busy disk) does not change it
/// much.
class MovingMedian {
 public:
  void add(double value);
  double value() const;  // 0 before the first add

 private:
  std::array<double, 31> values_{};
  std::size_t added_ = 0;
};

/// The usual seconds of a step: the median of the last steps, averaged over about the last `reach`
/// medians. A remaining time computed from it counts down evenly.
class SteadyPace {
 public:
  void add(double seconds);
  double seconds() const { return mean_; }  // 0 before the first add

 private:
  static constexpr double reach = 64;  // steps

  MovingMedian median_;
  double added_ = 0;
  double mean_ = 0;
};

/// The work of steps, in steps of a run's first batch. Without phases each step counts 1.
class StepWork {
 public:
  StepWork() = default;
  explicit StepWork(std::vector<StepTokens> phases) : phases_(std::move(phases)) {}

  double of(Index step) const;

  /// Of the steps [first, end).
  double between(Index first, Index end) const;

 private:
  std::vector<StepTokens> phases_;
};

/// Means over several steps, for example from one line of output to the next.
class StepMeans {
 public:
  void add(const StepRecord& record);

  bool empty() const { return tokens_ == 0; }
  Index losses() const { return losses_; }  // steps that were not skipped
  double loss() const;                      // of steps that were not skipped; NaN if all were
  double tokens_per_second() const;
  double mfu() const;

 private:
  double loss_sum_ = 0;
  Index losses_ = 0;
  Index tokens_ = 0;
  double seconds_ = 0;
  double mfu_seconds_ = 0;
};

/// Returns the peak resident memory of this process (VmHWM) in bytes, including memory that no
/// ledger owns. Throws Error(other) if /proc does not report it.
Index resident_peak_bytes();

}  // namespace kzero::metrics
