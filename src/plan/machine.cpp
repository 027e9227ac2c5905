#include "plan/machine.hpp"

#include <iterator>

namespace kzero::plan {

double Machine::attained_at(Index width) const {
  if (attained.empty()) return 1;
  const auto above = attained.lower_bound(width);
  if (above == attained.end()) return attained.rbegin()->second;
  if (above == attained.begin() || above->first == width) return above->second;
  const auto below = std::prev(above);
  const double part =
      static_cast<double>(width - below->first) / static_cast<double>(above->first - below->first);
  return below->second + part * (above->second - below->second);
}

Rates Machine::rates_at(Index width) const {
  return {.operations = operations * attained_at(width),
          .memory_bytes = memory_bytes,
          .sent_bytes = network.within_node,
          .host = host};
}

}  // namespace kzero::plan
