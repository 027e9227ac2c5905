#include "kernels/exact_sum.hpp"

#include <cmath>
#include <limits>

namespace kzero::kernels {

void ExactSum::carry() {
  for (int i = 0; i + 1 < limbs; ++i) {
    word[i + 1] += word[i] >> 32U;
    word[i] &= 0xFFFFFFFFU;
  }
}

double ExactSum::value() const {
  if (word[limbs] > 0) return std::numeric_limits<double>::quiet_NaN();
  ExactSum sum = *this;
  sum.carry();
  double total = 0;
  for (int i = limbs - 1; i >= 0; --i)
    total += std::ldexp(static_cast<double>(sum.word[i]), 32 * i - 149);
  return total;
}

}  // namespace kzero::kernels
