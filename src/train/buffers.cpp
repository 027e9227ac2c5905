#include "train/buffers.hpp"

#include <algorithm>

#include "checkpoint/state_shard.hpp"
#include "kernels/reduction.hpp"

namespace kzero::train {

namespace {

using memory::Category;

zero::FlatBuffer<float> state_buffer(memory::Arenas& arenas, const deck::Config& config,
                                     const Blueprint& blueprint) {
  return {arenas, offloads(config) ? Category::offloaded : Category::optimizer, blueprint.layout,
          blueprint.stage.optimizer};
}

template <class T>
zero::FlatBuffer<float> master_of(memory::Arenas& arenas, const deck::Config& config,
                                  const Blueprint& blueprint) {
  if (dtype_of<T> == Dtype::fp32 && !offloads(config)) return {};
  return state_buffer(arenas, config, blueprint);
}

template <class T>
std::optional<optim::CpuOffloadOptimizer<T>> offload_optimizer_of(memory::Arenas& arenas,
                                                                  const deck::Config& config,
                                                                  const Blueprint& b) {
  if (!offloads(config)) return std::nullopt;
  const bool whole = b.stage.optimizer == zero::Placement::replicated;
  Index largest = 1;
  for (const param::UnitLayout& unit : b.layout.units())
    largest = std::max(largest, whole ? unit.padded : unit.shard);
  // Gradients and parameters pass through, no more at a time than a bucket holds.
  const auto width = static_cast<Index>(sizeof(T));
  return optim::CpuOffloadOptimizer<T>(arenas, std::min(config.zero.bucket, 2 * largest * width));
}

tensor::Vector<float> take_partial(memory::Arenas& arenas, const param::FlatLayout& layout) {
  Index largest = 0;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.shard);
  const Index blocks = ceil_div(largest, kernels::squares_block);
  return {arenas.take<float>(Category::workspace, blocks), static_cast<std::size_t>(blocks)};
}

/// Device builds have copies of the state in host memory anyway.
tensor::Vector<float> take_snapshot(memory::Arenas& arenas, const deck::Config& config,
                                    const param::FlatLayout& layout) {
  if (!tensor::on_host || !config.checkpoint.asynchronous || config.checkpoint.folder.empty())
    return {};
  Index elements = 0;
  for (const param::UnitLayout& unit : layout.units()) elements += unit.shard;
  elements *= checkpoint::state_count;
  return {arenas.take<float>(Category::io, elements), static_cast<std::size_t>(elements)};
}

zero::GradientOptions gradient_options(const deck::Config& config, const Blueprint& blueprint) {
  return {blueprint.stage, blueprint.adds_reduced, config.zero.bucket, overlap_of(config),
          config.zero.reduction};
}

}  // namespace

template <class T>
Buffers<T>::Buffers(memory::Arenas& arenas, const deck::Config& config, const Blueprint& b,
                    Index rank, Index threads, tensor::Gemm* gemm, comm::Communicator* tensor)
    : parameters(arenas, b.layout, b.stage.parameters,
                 std::max(b.training.gathered_elements(), b.validation.gathered_elements()), rank),
      gradients(arenas, b.layout, gradient_options(config, b), b.training.target_elements(), rank),
      master(master_of<T>(arenas, config, b)),
      first(state_buffer(arenas, config, b)),
      second(state_buffer(arenas, config, b)),
      offload_optimizer(offload_optimizer_of<T>(arenas, config, b)),
      partial(take_partial(arenas, b.layout)),
      model(b.definition->make<T>(
          arenas,
          {{config.train.micro_batch, threads}, gemm, {b.tensor, tensor, config.zero.bucket}})),
      batches(arenas, config.train.micro_batch, config.model.sequence, config.model.vocab),
      snapshot(take_snapshot(arenas, config, b.layout)),
      optimizer_(b.stage.optimizer) {}

template <class T>
T* Buffers<T>::updated(Index u) const {
  return parameters.share(u, optimizer_);
}

template <class T>
optim::State Buffers<T>::state(Index u) const {
  if constexpr (dtype_of<T> == Dtype::fp32) {
    if (master.units().empty()) return {updated(u), first.unit(u), second.unit(u)};
  }
  return {master.unit(u), first.unit(u), second.unit(u)};
}

#define KZERO_INSTANTIATE(T) template struct Buffers<T>;
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

memory::Bytes planned_bytes(const deck::Config& config, const Blueprint& blueprint, Index threads) {
  memory::Arenas measuring;
  with_type(config.train.precision, [&](auto type) {
    Buffers<decltype(type)>(measuring, config, blueprint, 0, threads, nullptr, nullptr);
  });
  return measuring.bytes();
}

memory::Bytes planned_bytes(const deck::Config& config, const Machine& machine,
                            model::Family family) {
  return planned_bytes(config, Blueprint(config, machine.data_ranks, machine.tensor, family),
                       machine.threads);
}

}  // namespace kzero::train
