#include "zero/lifetimes.hpp"

#include <algorithm>
#include <numeric>

#include "param/flat_layout.hpp"

namespace kzero::zero {

namespace {

/// Returns the lowest offset at which `elements` fit between the values in `taken`, sorted by
/// offset.
Index lowest_place(const std::vector<Lifetime>& taken, Index elements) {
  Index offset = 0;
  for (const Lifetime& other : taken) {
    if (offset + elements <= other.offset) break;
    offset = std::max(offset, other.offset + other.elements);
  }
  return offset;
}

}  // namespace

Index assign_offsets(std::vector<Lifetime>& values) {
  Index total = 0, last = 0;
  for (Lifetime& value : values) {
    value.elements = round_up(value.elements, param::shard_alignment);
    last = std::max(last, value.last);
  }
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return values[a].elements > values[b].elements;
  });
  // Most lifetimes are short. Values with short lifetimes are indexed by their first operation.
  constexpr Index short_life = 64;
  std::vector<std::vector<std::size_t>> placed(last + 1);
  std::vector<std::size_t> long_lived;
  for (const std::size_t i : order) {
    Lifetime& value = values[i];
    std::vector<Lifetime> taken;
    const auto take = [&](std::size_t other) {
      if (values[other].first <= value.last && value.first <= values[other].last)
        taken.push_back(values[other]);
    };
    for (Index at = std::max<Index>(0, value.first - short_life); at <= value.last; ++at)
      std::ranges::for_each(placed[at], take);
    std::ranges::for_each(long_lived, take);
    (value.last - value.first > short_life ? long_lived : placed[value.first]).push_back(i);
    std::sort(taken.begin(), taken.end(),
              [](const Lifetime& a, const Lifetime& b) { return a.offset < b.offset; });
    value.offset = lowest_place(taken, value.elements);
    total = std::max(total, value.offset + value.elements);
  }
  return total;
}

}  // namespace kzero::zero
