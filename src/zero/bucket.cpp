#include "zero/bucket.hpp"

#include <algorithm>

namespace kzero::zero {

Bucket::Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout,
               comm::Overlap overlap, const SumPlan& sums)
    : terms_(layout.ranks() * sums.own()) {
  if (layout.ranks() == 1) return;
  const bool adds_in_nodes = sums.route() != Route::terms;
  if (adds_in_nodes) nodes_ = sums.nodes();
  const Index gradients = adds_in_nodes && sums.node_ranks() == 1 ? 0 : terms_;
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
