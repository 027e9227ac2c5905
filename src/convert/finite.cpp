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

/// Returns whether the bits of all magnitudes are smaller than the limit. Compilers vectorize a
/// maximum of integers.
bool all_below(std::uint32_t limit, std::span<const float> values) {
  std::uint32_t largest = 0;
  for (const float value : values) {
    largest = std::max(largest, std::bit_cast<std::uint32_t>(value) & without_sign);
  }
  return largest < limit;
}

/// The position of the first value that is not below the limit.
std::size_t first_beyond(std::uint32_t limit, std::span<const float> values) {
  std::size_t at = 0;
  while (all_below(limit, values.subspan(at, 1))) ++at;
  return at;
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
  if (all_below(infinity, values)) return;
  const std::size_t at = first_beyond(infinity, values);
  const Index element = range.begin + static_cast<Index>(at);
  fail(ExitCode::files, "{}: {} [{}] is {}; weights have to be finite numbers", printable(origin),
       printable(parameter.name), fmt::join(position_of(element, parameter.shape), ", "),
       std::isnan(values[at]) ? "NaN"
       : values[at] > 0       ? "infinity"
                              : "-infinity");
}

void require_in_range(const std::string& origin, const checkpoint::Parameter& parameter,
                      checkpoint::Range range, std::span<const float> values, Dtype dtype) {
  // The largest finite number plus half a unit in its last place: from there on, ties round to
  // infinity.
  constexpr float fp16_limit = 65520.0F, bf16_limit = 0x1.FFp127F;
  if (dtype == Dtype::fp32) return;
  const auto limit = std::bit_cast<std::uint32_t>(dtype == Dtype::fp16 ? fp16_limit : bf16_limit);
  if (all_below(limit, values)) return;
  const std::size_t at = first_beyond(limit, values);
  const Index element = range.begin + static_cast<Index>(at);
  fail(ExitCode::files,
       "{}: {} [{}] is {:g}, which {} cannot represent; choose a type with a wider range",
       printable(origin), printable(parameter.name),
       fmt::join(position_of(element, parameter.shape), ", "), values[at], name_of(dtype));
}

}  // namespace kzero::convert
