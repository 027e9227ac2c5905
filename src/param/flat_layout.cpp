#include "param/flat_layout.hpp"

#include <algorithm>
#include <iterator>

namespace kzero::param {

FlatLayout::FlatLayout(const Table& table, Index ranks) : ranks_(ranks) {
  for (const UnitSpec& spec : table) {
    UnitLayout unit;
    unit.begin = total_;
    unit.owned = owned_total_;
    for (const ParamSpec& p : spec.params) {
      unit.offsets.push_back(unit.elements);
      unit.elements += p.held();
    }
    unit.shard = round_up(ceil_div(unit.elements + spec.zeros, ranks), shard_alignment);
    unit.padded = ranks * unit.shard;
    total_ += unit.padded;
    owned_total_ += unit.shard;
    units_.push_back(std::move(unit));
  }
}

std::vector<Part> parts(const UnitSpec& spec, const UnitLayout& layout, Index begin, Index end) {
  std::vector<Part> found;
  for (std::size_t i = 0; i < spec.params.size(); ++i) {
    const Index first = layout.offsets[i], last = first + spec.params[i].held();
    const Index from = std::max(begin, first), to = std::min(end, last);
    if (from < to) found.push_back({static_cast<Index>(i), from - first, from, to - from});
  }
  return found;
}

CompactRange::CompactRange(const UnitSpec& spec, const UnitLayout& layout, const StateArray& array,
                           Index begin, Index end) {
  for (const Part& part : parts(spec, layout, begin, end)) {
    if (!array.extends_to(spec.params[part.param])) continue;
    runs_.push_back({part.in_unit - begin, part.count, elements_});
    elements_ += part.count;
  }
}

Index CompactRange::position(Index n) const {
  const auto after =
      std::ranges::upper_bound(runs_, n, {}, [](const Run& run) { return run.begin; });
  if (after == runs_.begin()) return -1;
  const Run& run = *std::prev(after);
  return n - run.begin < run.count ? run.at + n - run.begin : -1;
}

}  // namespace kzero::param
