#include "zero/state_buffer.hpp"

#include <algorithm>

namespace kzero::zero {

Index max_held(const param::UnitSpec& spec, const param::UnitLayout& layout,
               const param::StateArray& array, Placement placement) {
  const Index range = placement == Placement::replicated ? layout.elements : layout.shard;
  Index largest = 0;
  for (std::size_t i = 0; i < spec.params.size() && largest < range; ++i) {
    if (!array.extends_to(spec.params[i]) || spec.params[i].held() == 0) continue;
    // The ranks that hold a part of the parameter. Ranks without a part of any covered parameter
    // hold no elements.
    const Index first = layout.offsets[i] / range,
                last = (layout.offsets[i] + spec.params[i].held() - 1) / range;
    for (Index rank = first; rank <= last && largest < range; ++rank) {
      const Index begin = rank * range, end = std::min(begin + range, layout.elements);
      largest = std::max(largest, param::CompactRange(spec, layout, array, begin, end).elements());
    }
  }
  return largest;
}

StateBuffer::StateBuffer(memory::Arenas& arenas, memory::Category category,
                         const param::Table& table, const param::FlatLayout& layout,
                         const param::StateArray& array, const StatePlacement& own) {
  if (array.extent == param::Extent::all) {
    const FlatBuffer<float> all(arenas, category, layout, own.placement);
    units_ = all.units();
    elements_ = all.elements();
    data_ = all.data();
    return;
  }
  std::vector<Index> begins;
  for (std::size_t u = 0; u < table.size(); ++u) {
    const param::UnitLayout& unit = layout.units()[u];
    const Range range = held(own.placement, unit, own.rank);
    begins.push_back(elements_);
    ranges_.emplace_back(table[u], unit, array, range.begin, range.end);
    elements_ += round_up(max_held(table[u], unit, array, own.placement), param::shard_alignment);
  }
  data_ = arenas.take<float>(category, elements_);
  for (const Index begin : begins) units_.push_back(data_ ? data_ + begin : nullptr);
}

}  // namespace kzero::zero
