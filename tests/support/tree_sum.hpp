// The plain form of the sum that kernels/sum_order.hpp specifies.
#pragma once

#include <algorithm>
#include <bit>
#include <functional>
#include <vector>

#include "base/types.hpp"

namespace kzero::tests {

/// Returns the fp32 sum of terms [0, count) in blocks of `block`. `term(i)` returns the values of
/// term i, all of one length.
template <class Term>
std::vector<float> tree_sum(Index count, Index block, const Term& term) {
  const auto add = [](std::vector<float> left, const auto& right) {
    for (std::size_t i = 0; i < left.size(); ++i) left[i] += static_cast<float>(right[i]);
    return left;
  };
  const auto sum_of_block = [&](Index number) {
    const auto first = term(number * block);
    std::vector<float> total;
    for (const auto value : first) total.push_back(static_cast<float>(value));
    const Index end = std::min(count, (number + 1) * block);
    for (Index i = number * block + 1; i < end; ++i) total = add(total, term(i));
    return total;
  };
  // The largest power of two of blocks that is smaller, plus the others.
  const std::function<std::vector<float>(Index, Index)> tree = [&](Index begin, Index end) {
    if (end - begin == 1) return sum_of_block(begin);
    const auto middle =
        static_cast<Index>(std::bit_floor(static_cast<std::uint64_t>(end - begin - 1)));
    return add(tree(begin, begin + middle), tree(begin + middle, end));
  };
  return tree(0, ceil_div(count, block));
}

}  // namespace kzero::tests
