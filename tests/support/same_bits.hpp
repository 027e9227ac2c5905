#pragma once

#include <cstring>
#include <vector>

namespace kzero::tests {

/// Bitwise equality, including NaNs.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

}  // namespace kzero::tests
