// Functions of each lane of a vector register, and elementwise kernels on hosts in full vectors.
// Every element is computed by the same instructions, so its bits do not depend on its position.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>

#include "kernels/exponential.hpp"
#include "kernels/host/vector.hpp"

namespace kzero::kernels {

template <>
struct Arithmetic<HostVector> {
  using Words = HostWords;
  using Integers [[gnu::vector_size(sizeof(HostVector))]] = std::int32_t;

  static HostVector of_unsigned(Words n) { return __builtin_convertvector(n, HostVector); }
  static HostVector of_signed(Words n) {
    return __builtin_convertvector(reinterpret_cast<Integers>(n), HostVector);
  }
  static HostVector sqrt(HostVector x) {
    for (int i = 0; i < host_lanes; ++i) x[i] = std::sqrt(x[i]);
    return x;
  }
  static HostVector clamp(HostVector x, float min, float max) {
    const HostVector low = HostVector{} + min, high = HostVector{} + max;
    x = x < low ? low : x;
    return x > high ? high : x;
  }
  static HostVector power_of_two(HostVector n) {
    return reinterpret_cast<HostVector>((__builtin_convertvector(n, Integers) + 127) << 23);
  }
  static HostVector fma(HostVector x, HostVector y, HostVector z) { return fused(x, y, z); }
  static HostVector fma(float factor, HostVector x, HostVector y) {
    return fused(HostVector{} + factor, x, y);
  }
  static HostVector zero_below(HostVector x, float limit, HostVector value) {
    return x < HostVector{} + limit ? HostVector{} : value;
  }
};

namespace detail {

/// Loads the first `count` elements of a vector, and zeros for the rest.
template <class T>
HostVector load_first(const T* from, std::ptrdiff_t count) {
  T values[host_lanes] = {};
  std::copy_n(from, count, values);
  return load_widened(values);
}

/// Rounds the first `count` lanes and stores them.
template <class T>
void store_first(T* to, HostVector vector, std::ptrdiff_t count) {
  T values[host_lanes];
  store_rounded(values, vector);
  std::copy_n(values, count, to);
}

/// Calls vector(i) for full vectors that begin at i, and rest(i, count) for the remaining elements.
template <class F, class Rest>
void for_vectors(std::ptrdiff_t n, const F& vector, const Rest& rest) {
  std::ptrdiff_t i = 0;
  for (; i + host_lanes <= n; i += host_lanes) vector(i);
  if (i < n) rest(i, n - i);
}

/// Implements map for hosts with functions of vectors.
template <class Out, class F, class... In>
void map_vectors(std::ptrdiff_t n, Out* out, const F& f, const In*... in) {
  for_vectors(
      n, [&](std::ptrdiff_t i) { store_rounded(out + i, f(load_widened(in + i)...)); },
      [&](std::ptrdiff_t i, std::ptrdiff_t count) {
        store_first(out + i, f(load_first(in + i, count)...), count);
      });
}

/// Implements map_pairs for hosts with functions of vectors.
template <class Out, class F, class... In>
void map_pair_vectors(std::ptrdiff_t n, Out* first, Out* second, const F& f, const In*... in) {
  for_vectors(
      n,
      [&](std::ptrdiff_t i) {
        const auto results = f(load_widened(in + i)...);
        store_rounded(first + i, results.first);
        store_rounded(second + i, results.second);
      },
      [&](std::ptrdiff_t i, std::ptrdiff_t count) {
        const auto results = f(load_first(in + i, count)...);
        store_first(first + i, results.first, count);
        store_first(second + i, results.second, count);
      });
}

}  // namespace detail

}  // namespace kzero::kernels
