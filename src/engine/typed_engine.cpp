#include "engine/typed_engine.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <exception>
#include <iterator>
#include <limits>
#include <utility>

#include "base/wait.hpp"
#include "engine/frozen_weights.hpp"
#include "engine/initial_weights.hpp"
#include "engine/step_rules.hpp"
#include "grid/agreement.hpp"
#include "kernels/initialize.hpp"
#include "optim/schedule.hpp"
#include "runtime/profile.hpp"
#include "zero/clear_units.hpp"

namespace kzero::engine {

namespace {

using tensor::Accumulate;

std::optional<StateStaging> staging_of(const deck::Config& config, std::span<float> room) {
  if (host_reaches_state(config)) return std::nullopt;
  return std::optional<StateStaging>(std::in_place, room);
}

template <class T>
tensor::Vector<T> vector(T* data, Index count) {
  return {data, static_cast<std::size_t>(count)};
}

/// Returns the profile region of a training operation on one unit.
SpanName region_name(const param::Operation& operation, const param::Table& table) {
  constexpr std::string_view labels[] = {
      "kzero::engine::forward_unit", "kzero::engine::compute_loss", "kzero::engine::backward_unit"};
  return SpanName("{} {}", labels[static_cast<int>(operation.pass)], table[operation.unit].name);
}

}  // namespace

template <class T>
TypedEngine<T>::TypedEngine(const deck::Config& config, Blueprint blueprint, Machinery& m)
    : config_(config),
      data_(*m.data),
      grid_(m.grid),
      blueprint_(std::move(blueprint)),
      measured_(Buffers<T>::measured(config, blueprint_, data_.rank(), m.threads)),
      shared_(m.share(measured_.shared_bytes(),
                      "grid.node = 1 sends the parameters in messages instead")),
      arenas_(measured_, m.ledger, shared_.get()),
      buffers_(arenas_, config, blueprint_, data_.rank(), m.threads,
               {m.gemm.get(), m.tensor.get(), m.sequence.get()}),
      states_(states()),
      optimizer_step_(blueprint_, m, buffers_, states_),
      batch_sizes_(config.train),
      scaler_(config.train.precision, config.optimizer),
      spike_rule_(config.optimizer),
      staging_(staging_of(config_, buffers_.staging)),
      owned_(state_shards(states_,
                          {zero::Placement::partitioned, data_.rank(), blueprint_.tensor.rank},
                          blueprint_.state_arrays(), staging_ ? &*staging_ : nullptr)),
      local_(state_shards(states_, {blueprint_.stage.optimizer, data_.rank(), {}},
                          blueprint_.state_arrays(), staging_ ? &*staging_ : nullptr)) {
  if (config.run.verify_every > 0)
    verification_.emplace(config.run.verify_every, blueprint_, grid_);
  // Collectives include the padding. It must therefore be zero from the start.
  const tensor::Execution& exec = buffers_.model->exec();
  buffers_.parameters.clear(exec);
  const zero::FlatBuffer<T>& gradients = buffers_.gradients.held();
  zero::clear_units(exec, gradients.units(), gradients.data() + gradients.elements());
  for (const zero::StateBuffer& array : buffers_.state)
    zero::clear_units(exec, array.units(), array.data() + array.elements());
  // Touches the pages now, so that the first copy during training has no page faults.
  const std::span<float> snapshot = buffers_.snapshot;
  if (tensor::on_host && !snapshot.empty())
    kernels::fill<float>(exec, vector(snapshot.data(), std::ssize(snapshot)), 0.0F);
}

template <class T>
TypedEngine<T>::~TypedEngine() {
  // After an error, other ranks may never send what this rank waits for.
  if (std::uncaught_exceptions() > exceptions_) return;
  try {
    buffers_.parameters.finish(buffers_.model->exec(), data_);
    buffers_.model->exec().fence("kzero::engine::parameters_arrived");
  } catch (const std::exception&) {
    // A message failed, and the parameters that it carried are not needed anymore.
  }
}

template <class T>
std::vector<UnitState> TypedEngine<T>::states() const {
  std::vector<UnitState> states;
  for (std::size_t i = 0; i < blueprint_.trained.size(); ++i) {
    const auto u = static_cast<Index>(i);
    const param::UnitLayout& layout = blueprint_.trained_layout.unit(u);
    const zero::Range held = zero::held(blueprint_.stage.optimizer, layout, data_.rank());
    states.push_back({&blueprint_.trained[i], &layout, held, buffers_.state_of(u)});
  }
  return states;
}

template <class T>
void TypedEngine<T>::initialise(const InitialValues& values, const InitialValues& adapters) {
  const tensor::Execution& exec = buffers_.model->exec();
  const FrozenWeights<T> frozen(blueprint_, grid_, config_.train.seed);
  base_hash_ = frozen.initialise(exec, buffers_.parameters, data_, values);
  grid::collectively(grid_.world(), [&] {
    set_initial_weights(exec, config_.train.seed, blueprint_.table, states_,
                        frozen.empty() ? values : adapters);
  });
  parameters_from_master();
}

template <class T>
void TypedEngine<T>::parameters_from_master() {
  const tensor::Execution& exec = buffers_.model->exec();
  for (Index u = 0; u < std::ssize(states_); ++u) {
    const UnitState& unit = states_[u];
    if (!unit.spec->trains) continue;
    const Index count = unit.held.end - unit.held.begin;
    if (buffers_.state.front().elements() > 0) {
      kernels::round_to<T>(exec, vector<const float>(unit.state.master(), count),
                           vector(buffers_.updated(u), count));
    }
    if (blueprint_.stage.gathers_updates()) buffers_.parameters.all_gather_updated(u, exec, data_);
  }
  buffers_.parameters.finish(exec, data_);
  buffers_.parameters.finish_update(exec, data_);
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::owned_shards() {
  buffers_.model->exec().fence("kzero::engine::state_ready");
  return owned_;
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::snapshot() {
  auto shards = owned_shards();
  copy_states(buffers_.model->exec(), shards, buffers_.snapshot);
  return shards;
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::local_shards() {
  buffers_.model->exec().fence("kzero::engine::state_ready");
  return local_;
}

template <class T>
void TypedEngine<T>::loaded() {
  parameters_from_master();
}

/// Takes up the plan of the step's phase, and the samples of its batch.
template <class T>
void TypedEngine<T>::enter(Index step) {
  if (const Index phase = batch_sizes_.phase_of(step); phase != blueprint_.phase) {
    blueprint_.enter(phase);
    buffers_.gradients.follow(blueprint_.sums, blueprint_.adds_reduced);
  }
  blueprint_.batches.begin = batch_sizes_.first_sample(step);
}

template <class T>
StepResult TypedEngine<T>::step(Index step, const data::BatchSource& samples) {
  const runtime::ProfileRegion region([] { return "kzero::engine::step"; });
  set_step(step);
  enter(step);
  StepResult result;
  result.lr = optim::learning_rate(config_.optimizer, step, config_.train.steps);
  result.loss_scale = scaler_.scale();
  result.targets = count_targets(samples);
  step_targets_ = result.targets.value_or(blueprint_.batches.global_batch * config_.model.sequence);
  if (result.is_empty()) return empty_step(result);
  const bool verifies = verification_ && verification_->is_due(step);
  // Runs before the step's own computation, which overwrites these gradients.
  if (verifies) run_rounds(samples, verification_->second(step));
  data_.traffic().begin_step();
  run_rounds(samples, verifies ? Verification::first() : Computation{});
  optimizer_step_.add_squares();
  if (verifies) buffers_.hashes->read(buffers_.model->exec());
  const Totals totals = read_totals();
  if (verifies) verify(step, samples);
  result.loss = totals.loss / static_cast<double>(divisor(samples));
  if (buffers_.preference)
    result.preference = PreferencePass<T>::result(totals.figures, divisor(samples));
  if (deck::distills(config_.distill)) {
    const double kl = totals.divergence / static_cast<double>(divisor(samples));
    const double weight = config_.distill.weight;
    result.distill = {result.loss, kl};
    result.loss = (1 - weight) * result.loss + weight * kl;
  }
  result.grad_norm = totals.gradient_norm / result.loss_scale;
  result.expert_choices = totals.expert_choices;
  decide_skip(result, spike_rule_);
  if (!result.skipped) {
    // Skipped steps do not change the moments, so bias correction does not count them.
    optimizer_step_.update({.lr = result.lr,
                            .number = step + 1 - scaler_.skipped() - optimizer_start_,
                            .gradient_scale = optim::gradient_scale(
                                result.grad_norm, config_.optimizer.clip, result.loss_scale),
                            .gradient_norm = totals.gradient_norm,
                            .loss_scale = result.loss_scale},
                           balance_of(result.expert_choices));
  }
  record(result, scaler_, spike_rule_);
  data_.traffic().end_step();
  set_step(-1);
  return result;
}

/// How a step's choices of experts change the biases of routers.
template <class T>
RouterBalance TypedEngine<T>::balance_of(const std::vector<std::uint64_t>& choices) const {
  if (!config_.model.router_bias || config_.model.router_bias_rate == 0) return {};
  return {blueprint_.trained, choices, config_.model.router_bias_rate};
}

/// Ends a step without targets. All ranks know from the samples' numbers alone that it is one, so
/// none computes or sends anything. As other skipped steps, it does not count in bias correction.
template <class T>
StepResult TypedEngine<T>::empty_step(StepResult result) {
  result.loss = std::numeric_limits<double>::quiet_NaN();
  result.skipped = true;
  scaler_.leave_out();
  set_step(-1);
  return result;
}

/// Returns the number of targets of some samples.
template <class T>
Index TypedEngine<T>::targets(Index first_sample, Index count,
                              const data::BatchSource& samples) const {
  return samples.targets(first_sample, count).value_or(count * config_.model.sequence);
}

/// Returns the number of targets of the step, as samples.targets() does, on every rank. If the
/// tokens have to be read for it, each rank reads those of its own micro-batches; collective over
/// the data group then.
template <class T>
std::optional<Index> TypedEngine<T>::count_targets(const data::BatchSource& samples) const {
  const data::BatchPlan& plan = blueprint_.batches;
  if (!samples.counts_by_reading()) return samples.targets(plan.begin, plan.global_batch);
  std::uint64_t count = 0;
  for (Index round = 0; round < plan.rounds(); ++round) {
    const bool is_mine = plan.has(data_.rank(), round) &&
                         plan.part(data_.rank(), round) % plan.sequence == 0;  // once, not by part
    if (is_mine)
      count += static_cast<std::uint64_t>(
          targets(plan.first_sample(data_.rank(), round), plan.micro_batch, samples));
  }
  grid_.data().sum({&count, 1});
  return static_cast<Index>(count);
}

/// Returns the number of targets of the step, or of its pairs, by which its sums are divided.
template <class T>
Index TypedEngine<T>::divisor(const data::BatchSource& samples) const {
  if (!buffers_.preference) return step_targets_;
  const data::BatchPlan& plan = blueprint_.batches;
  return samples.pairs(plan.begin, plan.global_batch, nullptr).value_or(0);
}

/// Compares the two computations of a step before anything is updated (see Verification).
template <class T>
void TypedEngine<T>::verify(Index step, const data::BatchSource& samples) {
  verification_->require_agreement(step, *buffers_.hashes, [&](const Computation& by) {
    data_.traffic().end_step();
    run_rounds(samples, by);
    buffers_.hashes->read(buffers_.model->exec());
    buffers_.model->exec().fence("kzero::engine::hashes_read");
  });
}

/// Loads the micro-batch that a round deals to rank `dealt_to`. Returns nullopt if there is none.
template <class T>
std::optional<model::Batch> TypedEngine<T>::load(const data::BatchPlan& plan, Index round,
                                                 Index dealt_to, const data::BatchSource& samples) {
  if (!plan.has(dealt_to, round)) return std::nullopt;
  const runtime::ProfileRegion region([] { return "kzero::engine::load_batch"; });
  return buffers_.batches.load(buffers_.model->exec(), samples, plan.first_sample(dealt_to, round));
}

/// Waits for this rank's sums of a step, then adds the sums of all ranks in one control message:
/// the squares, the numbers of micro-batches, the choices of experts. A number's word is zero on
/// all ranks except one. After it no rank reads parameters until the update is finished, so ranks
/// that share them may write.
template <class T>
typename TypedEngine<T>::Totals TypedEngine<T>::read_totals() {
  const runtime::ProfileRegion region([] { return "kzero::engine::read_totals"; });
  constexpr auto of_squares = static_cast<std::size_t>(kernels::ExactSum::words_of_sum);
  const data::BatchPlan& plan = blueprint_.batches;
  const Index rounds = plan.rounds(), rank = data_.rank();
  buffers_.step_sums.read(buffers_.model->exec());
  const Index width = buffers_.step_sums.width(), each = rounds * width;  // numbers of a rank
  const std::size_t before_choices = of_squares + static_cast<std::size_t>(plan.ranks * each);
  const auto choices = buffers_.step_sums.choices();
  std::vector<std::uint64_t> words(before_choices + choices.size());
  kernels::ExactSum squares = buffers_.step_sums.squares();
  squares.carry();
  std::ranges::copy(squares.words(), words.begin());
  if (blueprint_.tensor.rank == 0) {  // the other tensor ranks have the same losses
    const auto mine = buffers_.step_sums.losses(rounds);
    for (Index i = 0; i < each && plan.has(rank, i / width); ++i) {
      words[of_squares + static_cast<std::size_t>(rank * each + i)] =
          std::bit_cast<std::uint64_t>(mine[i]);
    }
    std::ranges::copy(choices, std::span(words).subspan(before_choices).begin());
  }
  grid_.world().sum(words);
  std::vector<double> losses;
  losses.reserve(before_choices - of_squares);
  for (std::size_t i = of_squares; i < before_choices; ++i)
    losses.push_back(std::bit_cast<double>(words[i]));
  const auto all_choices = std::span(words).subspan(before_choices);
  Totals totals{sum_of_losses(plan, losses, width),
                std::sqrt(kernels::ExactSum::of_words(words.data(), 0).value()),
                {all_choices.begin(), all_choices.end()}};
  if (deck::distills(config_.distill)) {
    totals.divergence = sum_of_chunk_figures(plan, losses, width);
    return totals;
  }
  for (Index figure = 0; figure < width - plan.own_chunks(); ++figure)
    totals.figures.push_back(sum_of_figure(plan, losses, width, figure));
  return totals;
}

/// Enqueues the computation of a step's losses and gradients.
template <class T>
void TypedEngine<T>::run_rounds(const data::BatchSource& samples, const Computation& by) {
  const data::BatchPlan& plan = blueprint_.batches;
  const auto scale = static_cast<float>(scaler_.scale() / static_cast<double>(divisor(samples)));
  const auto mean_scale =
      static_cast<float>(scaler_.scale() * static_cast<double>(plan.micro_batch) /
                         static_cast<double>(plan.global_batch));
  const Index dealt_to = by.dealt_to(data_.rank(), plan.ranks);
  buffers_.step_sums.clear(buffers_.model->exec());
  for (Index round = 0; round < plan.rounds(); ++round) {
    std::optional<model::Batch> batch = load(plan, round, dealt_to, samples);
    if (batch) {
      batch->training_sample = plan.first_sample(dealt_to, round);
      batch->mean_scale = mean_scale;
      batch->expert_choices = buffers_.step_sums.expert_choices();
    }
    forward_backward(batch, round, scale, by);
  }
}

/// Runs one micro-batch forward and backward, and adds its losses to the step's sums. Without a
/// micro-batch, the rank only joins the collectives.
template <class T>
void TypedEngine<T>::forward_backward(const std::optional<model::Batch>& batch, Index round,
                                      float scale, const Computation& by) {
  const data::BatchPlan& plan = blueprint_.batches;
  const zero::Round place{round, round + 1 == plan.rounds()};
  const tensor::Execution& exec = buffers_.model->exec();
  const Accumulate accumulate =
      buffers_.gradients.adds_in_model(place) ? Accumulate::yes : Accumulate::no;
  double* loss = buffers_.step_sums.loss(round);
  const auto operate = [&](const param::Operation& operation, const zero::ScheduleStep& step) {
    buffers_.gradients.before(step, exec);
    if (batch) execute(operation, *batch, accumulate, scale, loss);
    if (batch && by.hashes) hash(step, round, by);
    if (by.reduces) {
      buffers_.gradients.after(step, place, exec, data_);
    } else {
      buffers_.gradients.drop(step);
    }
  };
  buffers_.parameters.run(blueprint_.training, exec, data_, operate);
  if (batch && by.hashes) buffers_.hashes->take_loss(exec, *by.hashes, round, loss);
  if (!by.reduces) return;
  const runtime::ProfileRegion region([] { return "kzero::engine::finish_reductions"; });
  buffers_.gradients.finish(exec, data_);
}

/// Enqueues the hashes of the gradients that an operation completed, before they are reduced. With
/// zero.accumulate = "local", the gradients are sums over this rank's micro-batches so far. Every
/// rank adds in the same order.
template <class T>
void TypedEngine<T>::hash(const zero::ScheduleStep& step, Index round, const Computation& by) {
  for (const Index u : step.complete) {
    const T* gradient = buffers_.gradients.units()[u];
    buffers_.hashes->template take_gradient<T>(
        buffers_.model->exec(), *by.hashes, round, u,
        vector(gradient, blueprint_.layout.unit(u).elements));
  }
}

/// Runs one training operation. The loss operation writes the sum of losses to *loss.
template <class T>
void TypedEngine<T>::execute(const param::Operation& operation, const model::Batch& batch,
                             Accumulate accumulate, float scale, double* loss) {
  const runtime::ProfileRegion region([&] { return region_name(operation, blueprint_.table); });
  model::Model<T>& model = *buffers_.model;
  const model::Units<const T> parameters(buffers_.parameters.units());
  const model::Units<T> gradients(buffers_.gradients.units());
  switch (operation.pass) {
    case param::Pass::forward:
      model.forward(operation.unit, parameters, batch);
      break;
    case param::Pass::loss:
      if (buffers_.preference) {
        buffers_.preference->loss_and_gradient(model, parameters, batch, scale, accumulate,
                                               gradients, loss);
      } else {
        model.loss_and_gradient(parameters, batch, scale, accumulate, gradients, loss);
      }
      break;
    case param::Pass::backward:
      model.backward(operation.unit, parameters, batch, accumulate, gradients);
      break;
  }
}

template <class T>
std::optional<double> TypedEngine<T>::evaluate_until(const StopQuestion& stops, Index micro_batches,
                                                     const data::BatchSource& samples) {
  const runtime::ProfileRegion region([] { return "kzero::engine::evaluate"; });
  const data::BatchPlan& step = blueprint_.batches;
  data::BatchPlan plan = step;
  plan.global_batch = micro_batches * step.micro_batch;
  plan.by_node = false;
  plan.begin = 0;
  const tensor::Execution& exec = buffers_.model->exec();
  const StepSums& sums = buffers_.step_sums;
  sums.clear(exec);
  std::vector<double> mine;
  for (Index round = 0; round < plan.rounds(); ++round) {
    if (stops()) return std::nullopt;
    const Index slot = round % sums.rounds();
    forward(load(plan, round, data_.rank(), samples), sums.loss(slot));
    if (slot + 1 < sums.rounds() && round + 1 < plan.rounds()) continue;
    sums.read(exec);
    std::ranges::copy(sums.losses(slot + 1), std::back_inserter(mine));
  }
  return sum_of_losses(plan, grid_.data().all_gather(mine), sums.width()) /
         static_cast<double>(targets(0, plan.global_batch, samples));
}

/// Runs one micro-batch forward and writes the sum of its losses to *loss. Without a micro-batch,
/// the rank only joins the collectives.
template <class T>
void TypedEngine<T>::forward(const std::optional<model::Batch>& batch, double* loss) {
  const tensor::Execution& exec = buffers_.model->exec();
  const model::Units<const T> parameters(buffers_.parameters.units());
  const auto operate = [&](const param::Operation& operation, const zero::ScheduleStep&) {
    if (batch && operation.pass == param::Pass::loss) {
      buffers_.model->loss(parameters, *batch, loss);
    } else if (batch) {
      buffers_.model->forward(operation.unit, parameters, *batch);
    }
  };
  buffers_.parameters.run(blueprint_.validation, exec, data_, operate);
}

std::unique_ptr<Engine> make_engine(const deck::Config& config, Blueprint blueprint,
                                    Machinery& machinery) {
  return with_type(config.train.precision, [&](auto type) -> std::unique_ptr<Engine> {
    return std::make_unique<TypedEngine<decltype(type)>>(config, std::move(blueprint), machinery);
  });
}

}  // namespace kzero::engine
