// What an optimizer keeps of a parameter's rows and columns, instead of its elements: arrays that
// are so small that every rank holds them all. Like state arrays they are declared once; memory,
// plan and checkpoints follow the declaration.
#pragma once

#include <string>
#include <vector>

#include "param/spec.hpp"

namespace kzero::param {

/// A matrix has rows of its last dimension, in the shape that it is stored in. A vector is one row,
/// of which nothing is kept: only its columns count.
enum class Axis { row, column };

/// An array of fp32 values for each parameter, one for each of its rows or columns.
struct ReducedArray {
  std::string name;  // in checkpoints
  Axis axis = Axis::row;
  bool operator==(const ReducedArray&) const = default;
};

using ReducedArrays = std::vector<ReducedArray>;

inline Index columns_of(const std::vector<Index>& shape) {
  return shape.empty() ? 1 : shape.back();
}

/// Rows of a matrix; 0 for a vector.
inline Index rows_of(const std::vector<Index>& shape) {
  Index rows = shape.size() > 1 ? 1 : 0;
  for (std::size_t dim = 0; dim + 1 < shape.size(); ++dim) rows *= shape[dim];
  return rows;
}

/// The values that the arrays have for a parameter of this shape, one array's after another's.
inline Index length_of(const ReducedArrays& arrays, const std::vector<Index>& shape) {
  Index length = 0;
  for (const ReducedArray& array : arrays)
    length += array.axis == Axis::row ? rows_of(shape) : columns_of(shape);
  return length;
}

}  // namespace kzero::param
