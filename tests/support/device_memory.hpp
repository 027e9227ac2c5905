// Access for tests to memory that the host may be unable to read or write.
#pragma once

#include <type_traits>
#include <vector>

#include "tensor/view.hpp"

namespace kzero::tests {

/// Waits for all enqueued work, then returns a copy of `count` elements of device memory.
template <class T>
std::vector<std::remove_const_t<T>> from_device(T* data, Index count) {
  using Element = std::remove_const_t<T>;
  std::vector<Element> values(count);
  const auto size = static_cast<std::size_t>(count);
  Kokkos::deep_copy(
      Kokkos::View<Element*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(values.data(), size),
      tensor::Vector<const Element>(data, size));
  return values;
}

template <class View>
auto from_device(const View& view) {
  return from_device(view.data(), static_cast<Index>(view.size()));
}

/// Writes `values` to device memory at `data`.
template <class T>
void to_device(const std::vector<T>& values, T* data) {
  Kokkos::deep_copy(tensor::Vector<T>(data, values.size()),
                    Kokkos::View<const T*, Kokkos::HostSpace, Kokkos::MemoryUnmanaged>(
                        values.data(), values.size()));
}

}  // namespace kzero::tests
