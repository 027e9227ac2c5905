#include "metrics/expert_load.hpp"

#include <algorithm>
#include <cmath>

namespace kzero::metrics {

ExpertLoad expert_load(std::span<const std::uint64_t> choices, Index layers) {
  ExpertLoad load;
  const std::size_t experts = choices.size() / static_cast<std::size_t>(layers);
  for (std::size_t first = 0; first < choices.size(); first += experts) {
    const auto of_block = choices.subspan(first, experts);
    double sum = 0, entropy = 0;
    for (const std::uint64_t count : of_block) sum += static_cast<double>(count);
    for (const std::uint64_t count : of_block) {
      const double share = static_cast<double>(count) / std::max(sum, 1.0);
      if (share > 0) entropy -= share * std::log(share);
    }
    const auto largest = static_cast<double>(std::ranges::max(of_block));
    const auto number = static_cast<double>(experts);
    load.largest.push_back(largest * number / std::max(sum, 1.0));
    load.entropy.push_back(experts > 1 ? entropy / std::log(number) : 1);
  }
  return load;
}

}  // namespace kzero::metrics
