// Trains a model on this rank: steps, validation and state. The interface hides the precision from
// the run (trainer.hpp).
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/timeline.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "data/batch_sizes.hpp"
#include "data/sampler.hpp"
#include "engine/blueprint.hpp"
#include "engine/machinery.hpp"
#include "engine/stored_weights.hpp"
#include "grid/group.hpp"
#include "optim/loss_scaler.hpp"
#include "optim/spike_rule.hpp"

namespace kzero::engine {

/// What a step learned from pairs of answers; means over the pairs of the global batch.
struct PreferenceResult {
  Index pairs = 0;
  double chosen_reward = 0, rejected_reward = 0;  // see kernels::PairSums
  double accuracy = 0;                            // share of the pairs that the chosen answer wins

  bool operator==(const PreferenceResult&) const = default;
};

/// The parts of the loss of a step with a teacher; means over the targets of the global batch.
struct DistillResult {
  double cross_entropy = 0;
  double kl = 0;  // see kernels/distillation.hpp

  bool operator==(const DistillResult&) const = default;
};

struct StepResult {
  double loss = 0;       // mean over the targets, or pairs, of the global batch, in nats
  double grad_norm = 0;  // global L2 norm before clipping, without the loss scale
  double lr = 0;
  double loss_scale = 1;
  bool skipped = false;  // nothing was updated: see is_empty() and is_spike(), or the gradients
                         // were not finite
  std::optional<Index> targets{};  // of the global batch; nullopt: every position has one
  std::optional<double>
      norm_limit{};  // above it the step is skipped; see optim::SpikeRule::limit()
  /// How often each expert was chosen [layers, experts], over the global batch without padding.
  std::vector<std::uint64_t> expert_choices{};
  std::optional<PreferenceResult> preference{};  // with preference.loss, of steps with pairs

  std::optional<DistillResult> distill{};  // with distill.file, of steps with targets

  /// Returns whether the step was skipped because its norm, although finite, was above the limit.
  bool is_spike() const { return skipped && norm_limit && std::isfinite(grad_norm); }

  /// Returns whether the step had nothing to predict. Its loss is NaN and its norm 0.
  bool is_empty() const { return targets == 0; }
};

/// Returns whether an evaluation stops before its next micro-batch. The result is the same on every
/// rank. All ranks of the grid call it, so it may be collective over them.
using StopQuestion = std::function<bool()>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const Blueprint& blueprint() const = 0;
  virtual const memory::Bytes& planned() const = 0;

  /// Sets the parameters from the deck's seed, or from `values` if given. With frozen parameters,
  /// `values` sets these and `adapters` sets the trained ones. The other state arrays are zero from
  /// the start. If `values` throws on one rank, all ranks throw. Collective over all ranks of the
  /// grid.
  virtual void initialise(const InitialValues& values, const InitialValues& adapters) = 0;
  void initialise(const InitialValues& values) { initialise(values, {}); }

  /// A hash of the frozen parameters that initialise() set, in fp32, which no grid, stage or
  /// precision changes; 0 if none are frozen.
  virtual std::uint64_t base_hash() const = 0;

  /// Returns the parts of the optimizer's state arrays that this rank writes to a checkpoint.
  /// Exactly one rank of the grid writes each element. The shards are views of the state itself.
  /// State on a device is accessed through their staging.
  virtual std::vector<checkpoint::StateShard> owned_shards() = 0;

  /// Returns owned_shards() as a host copy that stays unchanged until the next call. For runs with
  /// checkpoint.asynchronous.
  virtual std::vector<checkpoint::StateShard> snapshot() = 0;

  /// Returns views of all state that this rank loads from a checkpoint. After they are filled, call
  /// loaded() on every rank of the grid.
  virtual std::vector<checkpoint::StateShard> local_shards() = 0;
  virtual void loaded() = 0;

  /// Runs one optimizer step on the samples of global step `step`. The gradient is that of the mean
  /// loss over all targets of the step. A step without targets computes and sends nothing. Counts
  /// the traffic, except that of a second computation (run.verify_every). If that computation has
  /// different results, throws Mismatch on every rank and leaves the state unchanged. Collective
  /// over all ranks of the grid.
  virtual StepResult step(Index step, const data::BatchSource& samples) = 0;

  /// Returns the mean loss of the first `micro_batches` micro-batches, in nats per target. The bits
  /// do not depend on the number of data-parallel ranks. Calls `stops` before each round of
  /// micro-batches, and returns nullopt as soon as `stops` returns true. Collective over all ranks
  /// of the grid.
  virtual std::optional<double> evaluate_until(const StopQuestion& stops, Index micro_batches,
                                               const data::BatchSource& samples) = 0;

  double evaluate(Index micro_batches, const data::BatchSource& samples) {
    return *evaluate_until([] { return false; }, micro_batches, samples);
  }

  /// Evaluates the first `batches` batches of train.global_batch sequences.
  double validate(Index batches, const data::BatchSource& samples) {
    return evaluate(batches * blueprint().phases.front().batches.micro_batches(), samples);
  }

  /// The size and the first sample of each step's batch.
  virtual data::BatchSizes& batch_sizes() = 0;

  virtual optim::LossScaler& scaler() = 0;
  virtual optim::SpikeRule& spike_rule() = 0;

  /// The memory of the run's time line. Empty without run.profile.
  virtual std::span<SpanRecord> spans() = 0;

  /// The model's arithmetic outside the GEMMs.
  virtual model::Arithmetic model_arithmetic() const = 0;

  /// The optimizer's row and column arrays (param/reduced_array.hpp) of all parameters,
  /// concatenated in the order of the table. The same on every rank.
  virtual std::span<float> reduced_state() = 0;

  /// The number of non-skipped steps when the optimizer's state was initialised: 0 unless
  /// checkpoint.reset_optimizer reset it. Updates are counted from that step.
  virtual Index optimizer_start() const = 0;
  virtual void start_optimizer_at(Index good_steps) = 0;
};

/// Allocates the engine of a blueprint. `config` must be resolved. `config` and `machinery` must
/// outlive the engine. Throws Error(memory) if the engine does not fit. Not collective.
std::unique_ptr<Engine> make_engine(const deck::Config& config, Blueprint blueprint,
                                    Machinery& machinery);

/// Ends a run cleanly, without a checkpoint of the step. Every rank throws it at the same point.
class Mismatch : public grid::AgreedError {
 public:
  /// `reason` is the reason in the end record: "verification" or "replay".
  Mismatch(std::string reason, const std::string& text)
      : AgreedError(ExitCode::other, text), reason_(std::move(reason)) {}

  const std::string& reason() const { return reason_; }

 private:
  std::string reason_;
};

}  // namespace kzero::engine
