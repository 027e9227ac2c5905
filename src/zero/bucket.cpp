#include "zero/bucket.hpp"

#include <algorithm>

namespace kzero::zero {

Bucket::Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout,
               comm::Overlap overlap, const SumPlan& sums, std::span<const SumPlan> later)
    : terms_(layout.ranks() * sums.own()) {
  if (layout.ranks() == 1) return;
  const auto adds_in_nodes = [](const SumPlan& plan) { return plan.route() != Route::terms; };
  if (adds_in_nodes(sums) || std::ranges::any_of(later, adds_in_nodes)) nodes_ = sums.nodes();
  const bool has_terms = !adds_in_nodes(sums) || !std::ranges::all_of(later, adds_in_nodes);
  const Index gradients = has_terms || sums.node_ranks() > 1 ? terms_ : 0;
  const Index width = gradients * bytes_of(dtype) + 2 * nodes_ * bytes_of(Dtype::fp32);
  Index largest = 1;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.shard);
  const Index whole = bytes / width;
  slots_ = overlap == comm::Overlap::yes && whole < largest ? 2 : 1;
  slice_ = std::clamp<Index>(whole / slots_, 1, largest);
  constexpr auto category = memory::Category::buckets;
  sums_ = arenas.take<float>(category, slots_ * slice_ * 2 * nodes_);
  gradients_ = arenas.take<std::byte>(category, slots_ * slice_ * gradients * bytes_of(dtype));
}

}  // namespace kzero::zero
