// Zeroes a buffer of all units before its first use.
#pragma once

#include <vector>

#include "kernels/initialize.hpp"

namespace kzero::zero {

/// Zeroes the memory from the first of `units`, which are consecutive, to `end`, unit by unit. A
/// host's memory belongs to the NUMA domain of the thread that first writes to it. Each thread
/// writes the share of a unit that it will update. As one range, the first units would all be in
/// the first domain, and the last in the last.
template <class T>
void clear_units(const tensor::Execution& exec, const std::vector<T*>& units, T* end) {
  for (std::size_t u = 0; u < units.size(); ++u) {
    T* const begin = units[u];
    const auto count = (u + 1 < units.size() ? units[u + 1] : end) - begin;
    if (count > 0)
      kernels::fill<T>(exec, tensor::Vector<T>(begin, static_cast<std::size_t>(count)), 0);
  }
}

}  // namespace kzero::zero
