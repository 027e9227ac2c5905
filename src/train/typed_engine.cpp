#include "train/typed_engine.hpp"

#include <cmath>
#include <utility>

#include "base/wait.hpp"
#include "grid/agreement.hpp"
#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "kernels/row_sums.hpp"
#include "optim/schedule.hpp"

namespace kzero::train {

namespace {

using kernels::Update;

/// Computes the arenas' sizes: the layout code run without memory.
template <class T>
memory::Arenas measure(const deck::Config& config, const Blueprint& blueprint, Index rank,
                       Index threads) {
  memory::Arenas arenas;
  const Buffers<T> counted(arenas, config, blueprint, rank, threads, nullptr, nullptr);
  return arenas;
}

/// Parameters that are replicated over the tensor ranks are written by rank 0.
Wanted writes_of(const model::TensorRank& tensor) {
  return tensor.rank == 0 ? Wanted::all : Wanted::split;
}

template <class T>
tensor::Vector<T> vector(T* data, Index count) {
  return {data, static_cast<std::size_t>(count)};
}

template <class T>
void clear(const tensor::Execution& exec, const zero::FlatBuffer<T>& buffer) {
  if (buffer.elements() > 0) kernels::fill<T>(exec, vector(buffer.data(), buffer.elements()), 0);
}

}  // namespace

template <class T>
TypedEngine<T>::TypedEngine(const deck::Config& config, Index threads, const Peers& peers,
                            tensor::Gemm& gemm, memory::Ledger& ledger, const Ingredients& given)
    : config_(config),
      data_(peers.data),
      grid_(peers.grid),
      batch_plan_{config.train.global_batch, data_.size(), config.train.micro_batch},
      blueprint_(config, data_.size(), tensor_rank(peers.grid), given),
      measured_(measure<T>(config, blueprint_, data_.rank(), threads)),
      arenas_(measured_, ledger),
      buffers_(arenas_, config, blueprint_, data_.rank(), threads, &gemm, &peers.tensor),
      states_(states()),
      scaler_(config.train.precision, config.optimizer),
      owned_(states_, {zero::Placement::partitioned, data_.rank(), writes_of(blueprint_.tensor)},
             blueprint_.optimizer->state(), {host_reaches_state(config_), buffers_.host_state}),
      wanted_(states_, {blueprint_.stage.optimizer, data_.rank(), Wanted::all},
              blueprint_.optimizer->state(), {host_reaches_state(config_), buffers_.host_state}) {
  // Padding takes part in collectives, so it has to hold zeros from the start.
  const tensor::Execution& exec = buffers_.model->exec();
  clear(exec, buffers_.parameters.held());
  clear(exec, buffers_.gradients.held());
  for (const auto& array : buffers_.state) clear(exec, array);
  // Touched for the first time here, not while training waits for a copy.
  const std::span<float> snapshot = buffers_.host_state;
  if (tensor::on_host && !snapshot.empty())
    kernels::fill<float>(exec, vector(snapshot.data(), std::ssize(snapshot)), 0.0F);
}

template <class T>
std::vector<UnitState> TypedEngine<T>::states() const {
  std::vector<UnitState> states;
  for (std::size_t i = 0; i < blueprint_.table.size(); ++i) {
    const auto u = static_cast<Index>(i);
    const param::UnitLayout& layout = blueprint_.layout.unit(u);
    const zero::Range held = zero::held(blueprint_.stage.optimizer, layout, data_.rank());
    states.push_back({&blueprint_.table[i], &layout, held, buffers_.state_of(u)});
  }
  return states;
}

template <class T>
void TypedEngine<T>::initialise(const InitialValues& values) {
  grid::collectively(grid_.world(), [&] {
    set_initial_weights(buffers_.model->exec(), config_.train.seed, states_, values);
  });
  parameters_from_master();
}

template <class T>
void TypedEngine<T>::parameters_from_master() {
  const tensor::Execution& exec = buffers_.model->exec();
  comm::Request last = 0;
  Index u = 0;
  for (const UnitState& unit : states_) {
    const Index count = unit.held.end - unit.held.begin;
    if (buffers_.state.front().elements() > 0) {
      kernels::round_to<T>(exec, vector<const float>(unit.state.master(), count),
                           vector(buffers_.updated(u), count));
    }
    if (blueprint_.stage.gathers_updates())
      last = buffers_.parameters.all_gather_updated(u, exec, data_);
    ++u;
  }
  data_.wait(exec, last);
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::owned_shards() {
  buffers_.model->exec().fence("kzero::train::state_ready");
  owned_.download();
  return owned_.views();
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::snapshot() {
  auto shards = owned_shards();
  if (host_reaches_state(config_)) copy_states(shards, buffers_.host_state);
  return shards;
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::local_shards() {
  auto shards = wanted_shards();
  wanted_.download();
  return shards;
}

template <class T>
std::vector<checkpoint::StateShard> TypedEngine<T>::wanted_shards() {
  buffers_.model->exec().fence("kzero::train::state_ready");
  return wanted_.views();
}

template <class T>
void TypedEngine<T>::loaded() {
  wanted_.upload();
  parameters_from_master();
}

template <class T>
StepResult TypedEngine<T>::step(Index step, const data::Sampler& sampler) {
  data_.traffic().begin_step();
  set_step(step);
  StepResult result;
  result.lr = optim::learning_rate(config_.optimizer, step, config_.train.steps);
  result.loss_scale = scaler_.scale();
  const auto tokens = static_cast<double>(config_.train.global_batch * config_.model.sequence);
  result.loss = grid_.data().sum(run_micro_batches(step, sampler)) / tokens;
  result.grad_norm = gradient_norm() / result.loss_scale;
  result.skipped = !std::isfinite(result.grad_norm);
  if (!result.skipped) {
    // Skipped steps did not change the moments, so they do not count in their bias correction.
    update({result.lr, step + 1 - scaler_.skipped(),
            optim::gradient_scale(result.grad_norm, config_.optimizer.clip, result.loss_scale)});
  }
  scaler_.update(!result.skipped);
  data_.traffic().end_step();
  set_step(-1);
  return result;
}

template <class T>
double TypedEngine<T>::run_micro_batches(Index step, const data::Sampler& sampler) {
  const auto tokens = static_cast<double>(config_.train.global_batch * config_.model.sequence);
  const auto scale = static_cast<float>(scaler_.scale() / tokens);
  const Index count = blueprint_.micro_batches;
  double losses = 0;
  for (Index m = 0; m < count; ++m) {
    const model::Batch batch = buffers_.batches.load(
        buffers_.model->exec(), sampler, batch_plan_.first_sample(step, data_.rank(), m));
    losses += forward_backward(batch, {m == 0, m + 1 == count}, scale);
  }
  return losses;
}

/// Runs one micro-batch forward and backward; returns the sum of its losses.
template <class T>
double TypedEngine<T>::forward_backward(const model::Batch& batch, const zero::MicroBatch& micro,
                                        float scale) {
  const zero::Schedule& schedule = blueprint_.training;
  const tensor::Execution& exec = buffers_.model->exec();
  const Update update = buffers_.gradients.adds_in_model(micro) ? Update::add : Update::overwrite;
  double losses = 0;
  for (std::size_t i = 0; i < schedule.trace().size(); ++i) {
    const zero::ScheduleStep& step = schedule.steps()[i];
    buffers_.parameters.before(step, exec, data_);
    buffers_.gradients.before(step, exec);
    losses += execute(schedule.trace()[i], batch, update, scale);
    buffers_.parameters.after(step);
    buffers_.gradients.after(step, micro, exec, data_);
  }
  buffers_.gradients.finish(exec, data_);
  return losses;
}

/// Runs one operation of training; returns the sum of losses if it is the loss.
template <class T>
double TypedEngine<T>::execute(const param::Operation& operation, const model::Batch& batch,
                               Update update, float scale) {
  model::Model<T>& model = *buffers_.model;
  const model::Units<const T> parameters(buffers_.parameters.units());
  const model::Units<T> gradients(buffers_.gradients.units());
  switch (operation.pass) {
    case param::Pass::forward:
      model.forward(operation.unit, parameters, batch);
      return 0;
    case param::Pass::loss:
      return model.loss_and_gradient(parameters, batch, scale, update, gradients);
    case param::Pass::backward:
      model.backward(operation.unit, parameters, batch, update, gradients);
      return 0;
  }
  return 0;
}

template <class T>
double TypedEngine<T>::gradient_norm() {
  // Each element counts once, on the rank that owns it; the sum over ranks is in rank order.
  // Elements that are replicated over the tensor ranks count on the first of them.
  double sum = 0;
  for (std::size_t i = 0; i < blueprint_.table.size(); ++i) {
    const auto u = static_cast<Index>(i);
    const zero::Range own =
        zero::held(zero::Placement::partitioned, blueprint_.layout.unit(u), data_.rank());
    if (blueprint_.tensor.rank == 0) {
      sum += squares(u, 0, own.end - own.begin);
      continue;
    }
    const param::UnitSpec& spec = blueprint_.table[i];
    for (const auto& part : param::parts(spec, blueprint_.layout.unit(u), own.begin, own.end)) {
      const Index at = part.in_unit - own.begin;
      if (!spec.params[static_cast<std::size_t>(part.param)].split.is_full())
        sum += squares(u, at, at + part.count);
    }
  }
  return std::sqrt(grid_.world().sum(sum));
}

/// Returns the sum of squares of elements [begin, end) of this rank's shard of a unit's gradient.
template <class T>
double TypedEngine<T>::squares(Index unit, Index begin, Index end) {
  if (begin == end) return 0;
  return kernels::sum_of_squares<T>(
      buffers_.model->exec(), vector<const T>(buffers_.gradients.owned(unit) + begin, end - begin),
      buffers_.partial);
}

template <class T>
void TypedEngine<T>::update(const optim::Update& update) {
  const tensor::Execution& exec = buffers_.model->exec();
  comm::Request last = 0;
  Index u = 0;
  for (const UnitState& unit : states_) {
    const optim::Share<T> share{unit.spec,
                                unit.layout,
                                unit.held.begin,
                                unit.held.end,
                                buffers_.gradients.result(u),
                                buffers_.updated(u),
                                unit.state};
    if (buffers_.offload_optimizer) {
      buffers_.offload_optimizer->apply(exec, *blueprint_.optimizer, update, share);
    } else {
      blueprint_.optimizer->update(exec, update, share);
    }
    if (blueprint_.stage.gathers_updates())
      last = buffers_.parameters.all_gather_updated(u, exec, data_);
    ++u;
  }
  data_.wait(exec, last);
}

template <class T>
double TypedEngine<T>::validate(Index batches, const data::Sampler& sampler) {
  double losses = 0;
  for (Index b = 0; b < batches; ++b) {
    for (Index m = 0; m < blueprint_.micro_batches; ++m) {
      losses += evaluate(buffers_.batches.load(buffers_.model->exec(), sampler,
                                               batch_plan_.first_sample(b, data_.rank(), m)));
    }
  }
  const Index tokens = batches * config_.train.global_batch * config_.model.sequence;
  return grid_.data().sum(losses) / static_cast<double>(tokens);
}

/// Returns the sum of one micro-batch's losses.
template <class T>
double TypedEngine<T>::evaluate(const model::Batch& batch) {
  const zero::Schedule& schedule = blueprint_.validation;
  const tensor::Execution& exec = buffers_.model->exec();
  const model::Units<const T> parameters(buffers_.parameters.units());
  double losses = 0;
  for (std::size_t i = 0; i < schedule.trace().size(); ++i) {
    const param::Operation& operation = schedule.trace()[i];
    buffers_.parameters.before(schedule.steps()[i], exec, data_);
    if (operation.pass == param::Pass::loss) {
      losses += buffers_.model->loss(parameters, batch);
    } else {
      buffers_.model->forward(operation.unit, parameters, batch);
    }
    buffers_.parameters.after(schedule.steps()[i]);
  }
  return losses;
}

model::TensorRank tensor_rank(const grid::ProcessGrid& grid) {
  return {grid.tensor().rank(), grid.tensor().size()};
}

std::unique_ptr<Engine> make_engine(const deck::Config& config, Index threads, const Peers& peers,
                                    tensor::Gemm& gemm, memory::Ledger& ledger,
                                    const Ingredients& given) {
  return with_type(config.train.precision, [&](auto type) -> std::unique_ptr<Engine> {
    return std::make_unique<TypedEngine<decltype(type)>>(config, threads, peers, gemm, ledger,
                                                         given);
  });
}

}  // namespace kzero::train
