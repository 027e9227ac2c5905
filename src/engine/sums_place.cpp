#include "engine/sums_place.hpp"

#include "optim/optimizer.hpp"

namespace kzero::engine {

namespace {

Index held(zero::Placement placement, const param::FlatLayout& layout, Index copies) {
  return placement == zero::Placement::replicated ? layout.total() : copies * layout.owned_total();
}

}  // namespace

Index model_state_bytes(const deck::Config& config, const Blueprint& b) {
  const Index width = bytes_of(config.train.precision);
  const Index states = param::bytes_per_element(b.state_arrays());
  // In fp32 the master weights are the parameters.
  const Index extra = config.train.precision == Dtype::fp32 ? states - width : states;
  return width * held(b.stage.parameters, b.layout, b.stage.copies) +
         width * held(b.stage.gradients, b.trained_layout, 1) +
         extra * held(b.stage.optimizer, b.trained_layout, 1);
}

Index kept_sum_bytes(const zero::SumPlan& sums, const param::FlatLayout& layout) {
  const Index shards = sums.owner_open() + sums.nodes() * sums.node_open();
  return shards * layout.owned_total() * bytes_of(Dtype::fp32);
}

zero::SumPlan plan_sums(const deck::Config& config, const Blueprint& b,
                        const zero::SumShape& shape) {
  using enum deck::KeepsSums;
  if (config.zero.gradients != automatic) return {shape, config.zero.gradients};
  const zero::SumPlan by_nodes(shape, nodes), by_owners(shape, owners);
  if (b.stage.gradients == zero::Placement::replicated) return by_nodes;
  const Index more =
      kept_sum_bytes(by_nodes, b.trained_layout) - kept_sum_bytes(by_owners, b.trained_layout);
  return 2 * more <= model_state_bytes(config, b) ? by_nodes : by_owners;
}

}  // namespace kzero::engine
