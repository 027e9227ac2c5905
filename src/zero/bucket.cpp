#include "zero/bucket.hpp"

#include <algorithm>

namespace kzero::zero {

Bucket::Bucket(memory::Arenas& arenas, Index bytes, Dtype dtype, const param::FlatLayout& layout,
               comm::Overlap overlap)
    : ranks_(layout.ranks()) {
  if (ranks_ == 1) return;
  Index largest = 1;
  for (const param::UnitLayout& unit : layout.units()) largest = std::max(largest, unit.shard);
  const Index whole = bytes / bytes_of(dtype) / ranks_;
  slots_ = overlap == comm::Overlap::yes && whole < largest ? 2 : 1;
  slice_ = std::clamp<Index>(whole / slots_, 1, largest);
  data_ =
      arenas.take<std::byte>(memory::Category::buckets, slots_ * slice_ * ranks_ * bytes_of(dtype));
}

}  // namespace kzero::zero
