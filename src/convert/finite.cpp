#include "convert/finite.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace kzero::convert {

namespace {

constexpr std::uint32_t without_sign = 0x7FFFFFFF;
constexpr std::uint32_t infinity = 0x7F800000;

/// Integers have a maximum that compilers vectorize.
bool all_finite(std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & without_sign);
  }
  return largest < infinity;
}

std::vector<Index> position_of(Index element, const std::vector<Index>& shape) {
  std::vector<Index> position(shape.size());
  for (std::size_t axis = shape.size(); axis-- > 0;) {
    position[axis] = element % shape[axis];
    element /= shape[axis];
  }
  return position;
}

}  // namespace

void require_finite(const std::string& origin, const checkpoint::Parameter& parameter,
                    checkpoint::Range range, std::span<const float> values) {
  if (all_finite(values)) return;
  const auto bad = std::ranges::find_if(values, [](float value) {
    return !all_finite({&value, 1});
  });
  const Index element = range.begin + (bad - values.begin());
  fail(ExitCode::files, "{}: {} [{}] is {}; weights have to be finite numbers", printable(origin),
       printable(parameter.name), fmt::join(position_of(element, parameter.shape), ", "),
       std::isnan(*bad) ? "NaN"
       : *bad > 0       ? "infinity"
                        : "-infinity");
}

}  // namespace kzero::convert
