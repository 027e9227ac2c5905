#include "engine/node_sums.hpp"

#include <fmt/format.h>

namespace kzero::engine {

namespace {

/// How many times the least a node sends to other nodes.
Index times_sent(const zero::SumPlan& sums) {
  if (sums.route() == zero::Route::step) return 1;
  return sums.rounds() * (sums.route() == zero::Route::terms ? sums.node_ranks() : 1);
}

}  // namespace

std::string node_sums_note(const deck::Config& config, const Blueprint& blueprint) {
  const zero::SumPlan& sums = blueprint.sums;
  if (sums.nodes() == 1 || times_sent(sums) == 1) return "";
  for (const Index blocks : {config.train.sum_blocks, sums.nodes()}) {
    for (const auto keeps : {zero::KeepsSums::owners, zero::KeepsSums::nodes}) {
      if (keeps == zero::KeepsSums::owners && config.zero.gradients == deck::KeepsSums::nodes)
        continue;
      zero::SumShape shape = sums.shape();
      shape.blocks = blocks;
      if (times_sent(zero::SumPlan(shape, keeps)) > 1) continue;
      std::string settings;
      if (blocks != config.train.sum_blocks)
        settings += fmt::format("train.sum_blocks = {} (which changes bits)", blocks);
      if (keeps == zero::KeepsSums::nodes && config.zero.gradients == deck::KeepsSums::owners)
        settings += fmt::format("{}zero.gradients = \"node\" (which takes memory)",
                                settings.empty() ? "" : " and ");
      return fmt::format("nodes send each gradient {} times a step; {} would send it once",
                         times_sent(sums), settings);
    }
  }
  return "";
}

}  // namespace kzero::engine
