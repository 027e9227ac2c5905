// Runs training steps. Only this class combines model, zero and optim.
#pragma once

#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/buffers.hpp"
#include "engine/engine.hpp"
#include "engine/optimizer_step.hpp"
#include "engine/state_shards.hpp"
#include "engine/verification.hpp"
#include "optim/loss_scaler.hpp"

namespace kzero::engine {

template <class T>
class TypedEngine : public Engine {
 public:
  TypedEngine(const deck::Config& config, Blueprint blueprint, Machinery& machinery);
  /// Waits for the parameters that are being gathered, unless an error unwinds the stack.
  ~TypedEngine() override;

  const Blueprint& blueprint() const override { return blueprint_; }
  const memory::Bytes& planned() const override { return measured_.bytes(); }
  void initialise(const InitialValues& values, const InitialValues& adapters) override;
  std::uint64_t base_hash() const override { return base_hash_; }
  std::vector<checkpoint::StateShard> owned_shards() override;
  std::vector<checkpoint::StateShard> snapshot() override;
  std::vector<checkpoint::StateShard> local_shards() override;
  void loaded() override;
  StepResult step(Index step, const data::BatchSource& samples) override;
  std::optional<double> evaluate_until(const StopQuestion& stops, Index micro_batches,
                                       const data::BatchSource& samples) override;
  data::BatchSizes& batch_sizes() override { return batch_sizes_; }
  optim::LossScaler& scaler() override { return scaler_; }
  optim::SpikeRule& spike_rule() override { return spike_rule_; }
  std::span<SpanRecord> spans() override { return buffers_.spans; }
  model::Arithmetic model_arithmetic() const override { return buffers_.model->arithmetic(); }
  std::span<float> reduced_state() override { return buffers_.sums.reduced(); }
  Index optimizer_start() const override { return optimizer_start_; }
  void start_optimizer_at(Index good_steps) override { optimizer_start_ = good_steps; }

 private:
  /// A step's sums over all ranks.
  struct Totals {
    double loss;           // sum over all targets, or pairs
    double gradient_norm;  // includes the loss scale
    std::vector<std::uint64_t> expert_choices;
    std::vector<double> figures{};  // of pairs
    double divergence = 0;          // from a teacher, over all targets
  };

  std::optional<model::Batch> load(const data::BatchPlan& plan, Index round, Index dealt_to,
                                   const data::BatchSource& samples);
  void enter(Index step);
  Index targets(Index first_sample, Index count, const data::BatchSource& samples) const;
  std::optional<Index> count_targets(const data::BatchSource& samples) const;
  Index divisor(const data::BatchSource& samples) const;
  StepResult empty_step(StepResult result);
  Totals read_totals();
  RouterBalance balance_of(const std::vector<std::uint64_t>& choices) const;
  void run_rounds(const data::BatchSource& samples, const Computation& by);
  void verify(Index step, const data::BatchSource& samples);
  void forward_backward(const std::optional<model::Batch>& batch, Index round, float scale,
                        const Computation& by);
  void hash(const zero::ScheduleStep& step, Index round, const Computation& by);
  void execute(const param::Operation& operation, const model::Batch& batch,
               tensor::Accumulate accumulate, float scale, double* loss);
  void forward(const std::optional<model::Batch>& batch, double* loss);
  void parameters_from_master();
  std::vector<UnitState> states() const;

  const int exceptions_ = std::uncaught_exceptions();
  const deck::Config& config_;
  comm::Communicator& data_;
  const grid::ProcessGrid& grid_;
  Blueprint blueprint_;
  memory::Arenas measured_;
  std::unique_ptr<memory::SharedMemory> shared_;  // null unless ranks share memory
  memory::Arenas arenas_;
  Buffers<T> buffers_;
  const std::vector<UnitState> states_;  // of all units, in order
  OptimizerStep<T> optimizer_step_;
  data::BatchSizes batch_sizes_;
  optim::LossScaler scaler_;
  optim::SpikeRule spike_rule_;
  Index optimizer_start_ = 0;
  Index step_targets_ = 0;  // of the current step
  std::uint64_t base_hash_ = 0;
  std::optional<Verification> verification_;  // with run.verify_every
  std::optional<StateStaging> staging_;       // if the host cannot access the state
  const std::vector<checkpoint::StateShard> owned_, local_;
};

}  // namespace kzero::engine
