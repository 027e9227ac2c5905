#include "train/buffers.hpp"

#include <algorithm>

#include "kernels/reduction.hpp"

namespace kzero::train {

namespace {

using memory::Category;

template <class T>
float* master_of(memory::Arenas& arenas, const zero::FlatBuffer<T>& parameters) {
  if constexpr (dtype_of<T> == Dtype::fp32) {
    return parameters.data();
  } else {
    return arenas.take<float>(Category::optimizer, parameters.elements());
  }
}

Index largest_unit(const param::FlatLayout& layout) {
  Index largest = 0;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.padded);
  return largest;
}

tensor::Vector<float> take_partial(memory::Arenas& arenas, const param::FlatLayout& layout) {
  const Index blocks = ceil_div(largest_unit(layout), kernels::squares_block);
  return {arenas.take<float>(Category::workspace, blocks), static_cast<std::size_t>(blocks)};
}

}  // namespace

template <class T>
Buffers<T>::Buffers(memory::Arenas& arenas, const deck::Config& config,
                    const param::FlatLayout& layout, const Machine& machine, tensor::Gemm* gemm)
    : parameters(arenas, Category::parameters, layout),
      gradients(arenas, Category::gradients, layout),
      first(arenas, Category::optimizer, layout),
      second(arenas, Category::optimizer, layout),
      master(master_of(arenas, parameters)),
      bucket(arenas, config.zero.bucket, dtype_of<T>, layout),
      partial(take_partial(arenas, layout)),
      model(arenas, config.model, {config.train.micro_batch, machine.threads}, gemm),
      batches(arenas, config.train.micro_batch, config.model.sequence, config.model.vocab) {}

template struct Buffers<float>;
template struct Buffers<bf16>;
template struct Buffers<fp16>;

memory::Bytes planned_bytes(const deck::Config& config, const Machine& machine) {
  const param::FlatLayout layout(model::gpt_table(config.model), machine.data_ranks);
  memory::Arenas measuring;
  with_type(config.train.precision, [&](auto type) {
    Buffers<decltype(type)>(measuring, config, layout, machine, nullptr);
  });
  return measuring.bytes();
}

}  // namespace kzero::train
