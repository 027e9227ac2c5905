// A model in training on this rank: one step, one validation, its state. The precision is hidden
// behind this interface, which is all that the run around it (trainer.hpp) sees.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/timeline.hpp"
#include "checkpoint/format/state_shard.hpp"
#include "data/sampler.hpp"
#include "engine/blueprint.hpp"
#include "engine/initial_values.hpp"
#include "engine/machinery.hpp"
#include "optim/loss_scaler.hpp"

namespace kzero::engine {

struct StepResult {
  double loss = 0;       // mean over the global batch, natural log
  double grad_norm = 0;  // global L2 norm before clipping, unscaled
  double lr = 0;
  double loss_scale = 1;
  bool skipped = false;  // the gradients were not finite: nothing was updated
};

/// Tells whether an evaluation stops before its next micro-batch: the same on every rank. Called by
/// all ranks of the grid, and may be collective over them.
using StopQuestion = std::function<bool()>;

class Engine {
 public:
  virtual ~Engine() = default;

  virtual const Blueprint& blueprint() const = 0;
  virtual const memory::Bytes& planned() const = 0;

  /// Parameters from the deck's seed, or from `values` where given; the other state arrays zero.
  /// What `values` throws on one rank all ranks throw. Collective over all ranks of the grid.
  virtual void initialise(const InitialValues& values) = 0;

  /// The parts of the optimizer's state arrays that this rank writes to a checkpoint: each element
  /// on one rank of the grid. They are the state itself, on a device behind the shards' staging.
  virtual std::vector<checkpoint::StateShard> owned_shards() = 0;

  /// Returns the same as a copy on the host that stays as it is while the engine goes on, until the
  /// next call. For runs with checkpoint.asynchronous.
  virtual std::vector<checkpoint::StateShard> snapshot() = 0;

  /// Returns shards like owned_shards(), but of all state of this rank: what it needs from a
  /// checkpoint. Call loaded() once they are filled, on every rank of the grid.
  virtual std::vector<checkpoint::StateShard> local_shards() = 0;
  virtual void loaded() = 0;

  /// Runs one optimizer step on the samples of global step `step`; its traffic is counted as a
  /// step's, except that of a second computation (run.verify_every). If that one has other results,
  /// throws Mismatch on every rank and changes no state. Collective over all ranks of the grid.
  virtual StepResult step(Index step, const data::BatchSource& samples) = 0;

  /// Returns the mean loss of the first `micro_batches` micro-batches of the samples, in nats a
  /// token: the same bits on any number of data-parallel ranks. Asks `stops` before each round of
  /// micro-batches, and returns none once it says yes. Collective over all ranks of the grid.
  virtual std::optional<double> evaluate_until(const StopQuestion& stops, Index micro_batches,
                                               const data::BatchSource& samples) = 0;

  /// The same, to its end.
  double evaluate(Index micro_batches, const data::BatchSource& samples) {
    return *evaluate_until([] { return false; }, micro_batches, samples);
  }

  /// Returns the same of the first `batches` global batches.
  double validate(Index batches, const data::BatchSource& samples) {
    return evaluate(batches * blueprint().batches.micro_batches(), samples);
  }

  virtual optim::LossScaler& scaler() = 0;

  /// The memory of the run's time line; empty without run.profile.
  virtual std::span<SpanRecord> spans() = 0;

  /// How the model computes beside the GEMMs.
  virtual model::Arithmetic model_arithmetic() const = 0;

  /// The optimizer's arrays of rows and columns (param/reduced_array.hpp), of all parameters in the
  /// order of the table, one array's after another's: the same on every rank.
  virtual std::span<float> reduced_state() = 0;

  /// Steps done, but for skipped ones, when the optimizer's state began: 0, unless
  /// checkpoint.reset_optimizer began it anew. Updates are counted from there.
  virtual Index optimizer_start() const = 0;
  virtual void start_optimizer_at(Index good_steps) = 0;
};

/// Allocates the engine of a blueprint; `config`, which is resolved, and `machinery` must outlive
/// it. Throws Error(memory) if it does not fit. Not collective.
std::unique_ptr<Engine> make_engine(const deck::Config& config, Blueprint blueprint,
                                    Machinery& machinery);

}  // namespace kzero::engine
