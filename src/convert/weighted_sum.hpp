// One term of a weighted sum in fp64. It has a source of its own, because its compiler must not
// fuse the multiplication with the addition: any program can then repeat the sum bit for bit.
#pragma once

#include <span>

namespace kzero::convert {

/// Adds weight * values, rounded to fp64, to the sums. The first term replaces them: a sum that
/// began with 0 would lose the sign of -0.
void add_product(double weight, std::span<const float> values, bool is_first,
                 std::span<double> sums);

}  // namespace kzero::convert
