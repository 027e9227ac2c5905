// Shared by the kernel tests: element types, and sizes that are one, prime, or not a multiple of
// any block.
#pragma once

#include <array>
#include <cmath>
#include <string>

#include "support/guarded.hpp"
#include "support/numbers.hpp"

namespace kzero::kernels {

using tensor::Execution;
using tests::Bounded;
using tests::expect_close;
using tests::gamma;
using tests::Guarded;
using tests::numbers;
using tests::stored;
using tests::u;

/// The bound on the relative error of e^x in this build, stated in src/kernels/exponential.hpp.
inline double exponential_error(double x) {
  return runtime::kernels_on_host ? tests::host_exponential_error : 2.4e-7 + 1.4e-7 * std::abs(x);
}

using Elements = testing::Types<float, bf16, fp16>;

inline constexpr std::array<Index, 4> row_counts{1, 7, 33, 65};
inline constexpr std::array<Index, 7> widths{1, 3, 31, 33, 48, 64, 257};

/// Calls f(rows, width, name of the case) for all pairs.
template <class F>
void for_each_shape(const F& f) {
  for (const Index rows : row_counts) {
    for (const Index width : widths) {
      f(rows, width, std::to_string(rows) + " x " + std::to_string(width));
    }
  }
}

}  // namespace kzero::kernels
