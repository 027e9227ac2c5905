#include "convert/weighted_sum.hpp"

#include <cstddef>

namespace kzero::convert {

void add_product(double weight, std::span<const float> values, bool is_first,
                 std::span<double> sums) {
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const double product = weight * static_cast<double>(values[i]);
    sums[i] = is_first ? product : sums[i] + product;
  }
}

}  // namespace kzero::convert
