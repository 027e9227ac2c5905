#include "train/step.hpp"

#include <cmath>

#include "kernels/initialize.hpp"
#include "kernels/reduction.hpp"
#include "optim/schedule.hpp"

namespace kzero::train {

namespace {

using kernels::Update;

/// The arenas' sizes: the layout code run without memory.
template <class T>
memory::Arenas measure(const deck::Config& config, const param::FlatLayout& layout,
                       const Machine& machine) {
  memory::Arenas arenas;
  const Buffers<T> counted(arenas, config, layout, machine, nullptr);
  return arenas;
}

template <class T>
tensor::Vector<T> vector(T* data, Index count) {
  return {data, static_cast<std::size_t>(count)};
}

}  // namespace

template <class T>
TypedEngine<T>::TypedEngine(const deck::Config& config, const Machine& machine,
                            comm::Communicator& data, const grid::Group& data_group,
                            tensor::Gemm& gemm, memory::Ledger& ledger)
    : config_(config),
      data_(data),
      data_group_(data_group),
      batch_plan_{config.train.global_batch, machine.data_ranks, config.train.micro_batch},
      table_(model::gpt_table(config.model)),
      layout_(table_, machine.data_ranks),
      measured_(measure<T>(config, layout_, machine)),
      arenas_(measured_, ledger),
      buffers_(arenas_, config, layout_, machine, &gemm),
      parameter_units_(buffers_.parameters.units().begin(), buffers_.parameters.units().end()),
      scaler_(config.train.precision, config.optimizer),
      owned_(unit_states(), zero::Placement::partitioned, data.rank()),
      needed_(unit_states(), zero::stage(config.zero.stage).optimizer, data.rank()) {
  // Padding takes part in exchanges, so it has to hold zeros from the start.
  const tensor::Execution& exec = buffers_.model.exec();
  kernels::fill<T>(exec, vector(buffers_.parameters.data(), layout_.total()), 0);
  kernels::fill<T>(exec, vector(buffers_.gradients.data(), layout_.total()), 0);
  kernels::fill<float>(exec, vector(buffers_.first.data(), layout_.total()), 0);
  kernels::fill<float>(exec, vector(buffers_.second.data(), layout_.total()), 0);
  kernels::fill<float>(exec, vector(buffers_.master, layout_.total()), 0);
}

template <class T>
std::vector<UnitState> TypedEngine<T>::unit_states() const {
  std::vector<UnitState> states;
  for (std::size_t u = 0; u < table_.size(); ++u) {
    const param::UnitLayout& unit = layout_.units()[u];
    states.push_back({&table_[u], &unit, buffers_.state(unit)});
  }
  return states;
}

template <class T>
void TypedEngine<T>::initialise(const InitialValues& values) {
  const tensor::Execution& exec = buffers_.model.exec();
  std::uint64_t id = 0;  // of the parameter in the model: part of what its draws depend on
  std::vector<float> staging;
  for (std::size_t u = 0; u < table_.size(); ++u) {
    const param::UnitLayout& unit = layout_.units()[u];
    for (std::size_t i = 0; i < table_[u].params.size(); ++i, ++id) {
      const param::ParamSpec& p = table_[u].params[i];
      const auto master = vector(buffers_.master + unit.begin + unit.offsets[i], p.elements());
      if (values) {
        staging.resize(p.elements());
        values(p, {0, p.elements()}, staging);
        Kokkos::deep_copy(exec, master,
                          Kokkos::View<float*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                              staging.data(), staging.size()));
        exec.fence("kzero::train::parameter_read");
      } else if (p.init == param::Init::normal) {
        kernels::draw_normal(exec, config_.train.seed, id, 0, static_cast<float>(p.std), master);
      } else {
        kernels::fill<float>(exec, master, p.init == param::Init::ones ? 1.0F : 0.0F);
      }
    }
  }
  parameters_from_master();
}

template <class T>
void TypedEngine<T>::parameters_from_master() {
  if constexpr (dtype_of<T> != Dtype::fp32) {
    kernels::round_to<T>(buffers_.model.exec(),
                         vector<const float>(buffers_.master, layout_.total()),
                         vector(buffers_.parameters.data(), layout_.total()));
  }
}

template <class T>
std::vector<checkpoint::Piece> TypedEngine<T>::owned_pieces() {
  buffers_.model.exec().fence("kzero::train::state_ready");
  owned_.download();
  return owned_.views();
}

template <class T>
std::vector<checkpoint::Piece> TypedEngine<T>::needed_pieces() {
  buffers_.model.exec().fence("kzero::train::state_ready");
  return needed_.views();
}

template <class T>
void TypedEngine<T>::loaded() {
  needed_.upload();
  parameters_from_master();
}

template <class T>
StepResult TypedEngine<T>::step(Index step, const data::Sampler& sampler) {
  StepResult result;
  result.lr = optim::learning_rate(config_.optimizer, step, config_.train.steps);
  result.loss_scale = scaler_.scale();
  const auto tokens = static_cast<double>(config_.train.global_batch * config_.model.sequence);
  result.loss = data_group_.sum(accumulate(step, sampler)) / tokens;
  result.grad_norm = gradient_norm() / result.loss_scale;
  result.skipped = !std::isfinite(result.grad_norm);
  if (!result.skipped) {
    // Skipped steps did not move the moments, so they do not count in their bias correction.
    update(result.lr, step + 1 - scaler_.skipped(),
           optim::gradient_scale(result.grad_norm, config_.optimizer.clip, result.loss_scale));
  }
  scaler_.update(!result.skipped);
  return result;
}

template <class T>
double TypedEngine<T>::accumulate(Index step, const data::Sampler& sampler) {
  model::Gpt<T>& model = buffers_.model;
  const model::Units<const T> parameters(parameter_units_);
  const model::Units<T> gradients(buffers_.gradients.units());
  const auto tokens = static_cast<double>(config_.train.global_batch * config_.model.sequence);
  const auto scale = static_cast<float>(scaler_.scale() / tokens);
  const Index micro_batches = batch_plan_.micro_batches();
  double losses = 0;
  for (Index micro = 0; micro < micro_batches; ++micro) {
    const Update update = micro == 0 ? Update::overwrite : Update::add;
    const bool last = micro + 1 == micro_batches;
    const model::Batch batch = buffers_.batches.load(
        model.exec(), sampler, batch_plan_.first_sample(step, data_.rank(), micro));
    for (Index u = 0; u < model.head(); ++u) model.forward(u, parameters, batch);
    losses += model.loss_and_gradient(parameters, batch, scale, update, gradients);
    if (last) reduce(model.head());
    for (Index u = model.head() - 1; u >= 0; --u) {
      model.backward(u, parameters, batch, update, gradients);
      if (last) reduce(u);
    }
  }
  return losses;
}

template <class T>
void TypedEngine<T>::reduce(Index u) {
  buffers_.bucket.template all_reduce<T>(buffers_.model.exec(), data_, layout_.unit(u),
                                         buffers_.gradients.unit(u));
}

template <class T>
double TypedEngine<T>::gradient_norm() {
  // Each element counts once, on the rank that owns it; the sum over ranks is in rank order.
  double squares = 0;
  for (std::size_t u = 0; u < table_.size(); ++u) {
    const param::UnitLayout& unit = layout_.units()[u];
    const zero::Range own = zero::held(zero::Placement::partitioned, unit, data_.rank());
    if (own.begin == own.end) continue;
    squares += kernels::sum_of_squares<T>(
        buffers_.model.exec(),
        vector<const T>(buffers_.gradients.data() + unit.begin + own.begin, own.end - own.begin),
        buffers_.partial);
  }
  return std::sqrt(data_group_.sum(squares));
}

template <class T>
void TypedEngine<T>::update(double lr, Index updates, double gradient_scale) {
  const zero::Placement placement = zero::stage(config_.zero.stage).optimizer;
  for (const UnitState& unit : unit_states()) {
    const zero::Range held = zero::held(placement, *unit.layout, data_.rank());
    const Index at = unit.layout->begin + held.begin;
    optim::Share<T> share{unit.spec,
                          unit.layout,
                          held.begin,
                          held.end,
                          buffers_.gradients.data() + at,
                          buffers_.parameters.data() + at,
                          {unit.state.master + held.begin, unit.state.first + held.begin,
                           unit.state.second + held.begin}};
    optim::update<T>(buffers_.model.exec(), config_.optimizer, lr, updates, gradient_scale, share);
  }
}

template <class T>
double TypedEngine<T>::validate(Index batches, const data::Sampler& sampler) {
  model::Gpt<T>& model = buffers_.model;
  const model::Units<const T> parameters(parameter_units_);
  double losses = 0;
  for (Index b = 0; b < batches; ++b) {
    for (Index micro = 0; micro < batch_plan_.micro_batches(); ++micro) {
      const model::Batch batch = buffers_.batches.load(
          model.exec(), sampler, batch_plan_.first_sample(b, data_.rank(), micro));
      for (Index u = 0; u < model.head(); ++u) model.forward(u, parameters, batch);
      losses += model.loss(parameters, batch);
    }
  }
  const Index tokens = batches * config_.train.global_batch * config_.model.sequence;
  return data_group_.sum(losses) / static_cast<double>(tokens);
}

std::unique_ptr<Engine> make_engine(const deck::Config& config, const Machine& machine,
                                    comm::Communicator& data, const grid::Group& data_group,
                                    tensor::Gemm& gemm, memory::Ledger& ledger) {
  return with_type(config.train.precision, [&](auto type) -> std::unique_ptr<Engine> {
    return std::make_unique<TypedEngine<decltype(type)>>(config, machine, data, data_group, gemm,
                                                         ledger);
  });
}

}  // namespace kzero::train
