#include "engine/sums_place.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.hpp"
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

namespace {

/// How many times the least a node sends to other nodes.
Index times_sent(const zero::SumPlan& sums) {
  if (sums.route() == zero::Route::step) return 1;
  return sums.rounds() * (sums.route() == zero::Route::terms ? sums.node_ranks() : 1);
}

std::string note_on_sums(const deck::Config& config, const Blueprint& blueprint) {
  const zero::SumPlan& sums = blueprint.sums;
  if (sums.nodes() == 1 || times_sent(sums) == 1) return "";
  for (const Index blocks : {config.train.sum_blocks, sums.nodes()}) {
    zero::SumShape shape = sums.shape();
    shape.blocks = blocks;
    const zero::SumPlan as_in_deck = plan_sums(config, blueprint, shape);
    const zero::SumPlan by_nodes(shape, zero::KeepsSums::nodes);
    for (const bool is_forced : {false, true}) {
      if (times_sent(is_forced ? by_nodes : as_in_deck) > 1) continue;
      std::string settings;
      if (blocks != config.train.sum_blocks)
        settings += fmt::format("train.sum_blocks = {} (which changes bits)", blocks);
      if (is_forced)
        settings += fmt::format("{}zero.gradients = \"node\" (which takes {} a rank)",
                                settings.empty() ? "" : " and ",
                                format_bytes(std::max<Index>(
                                    0, kept_sum_bytes(by_nodes, blueprint.trained_layout) -
                                           kept_sum_bytes(as_in_deck, blueprint.trained_layout))));
      return fmt::format("nodes send each gradient {} times a step; {} would send it once",
                         times_sent(sums), settings);
    }
  }
  return "";
}

/// In stage 3, units are gathered from all nodes for forward and again for backward.
std::string note_on_parameters(const Blueprint& b) {
  if (b.sums.nodes() == 1 || b.stage.parameters == zero::Placement::replicated ||
      b.stage.copies > 1)
    return "";
  const double gathered = static_cast<double>(b.batches.rounds() * b.training.gathers()) /
                          static_cast<double>(b.layout.total());
  if (gathered <= 1) return "";
  return fmt::format(
      "nodes send each parameter {:.1f} times a step; zero.parameters = \"node\" (which takes "
      "memory) would send it once",
      gathered);
}

}  // namespace

std::vector<std::string> node_notes(const deck::Config& config, const Blueprint& blueprint) {
  std::vector<std::string> notes{note_on_sums(config, blueprint), note_on_parameters(blueprint)};
  std::erase(notes, "");
  return notes;
}

}  // namespace kzero::engine
