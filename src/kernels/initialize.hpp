// Initial weights and conversions. A random draw is a pure function of (seed, parameter, element),
// so every grid starts from the same model.
#pragma once

#include <cstdint>

#include "kernels/row.hpp"

namespace kzero::kernels {

/// Sets x[i] = value.
template <class T>
void fill(const Execution& exec, Vector<T> x, float value);

/// The elements of a parameter to draw. The parameter is divided into blocks of `stride` elements.
/// Of each block, `length` elements from `begin` on are wanted. x holds the wanted ones from number
/// `first` on.
struct DrawnElements {
  Index first = 0;
  Index stride = 1;
  Index begin = 0;
  Index length = 1;
};

/// Sets x[i] = std * the standard normal number of (seed, parameter, its element). Uses Box-Muller
/// on Philox words.
void draw_normal(const Execution& exec, std::uint64_t seed, std::uint64_t parameter,
                 const DrawnElements& elements, float std, Vector<float> x);

/// Sets x[i] = bound * the number in [-1, 1) of (seed, parameter, its element), a multiple of
/// 2^-23.
void draw_uniform(const Execution& exec, std::uint64_t seed, std::uint64_t parameter,
                  const DrawnElements& elements, float bound, Vector<float> x);

/// Sets to[i] = from[i] rounded to T.
template <class T>
void round_to(const Execution& exec, Vector<const float> from, Vector<T> to);

}  // namespace kzero::kernels
