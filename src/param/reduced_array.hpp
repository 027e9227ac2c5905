// Arrays that an optimizer keeps per row or column of a parameter instead of per element. They are
// so small that every rank holds all of them. Like state arrays they are declared once; memory,
// plan and checkpoints follow the declaration.
#pragma once

#include <string>
#include <vector>

#include "param/spec.hpp"

namespace kzero::param {

/// The rows of a matrix run along its last dimension, in its stored shape. A vector is one row: it
/// has values for its columns only, and none for its row.
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

/// The number of values that all arrays together have for a parameter of this shape.
inline Index length_of(const ReducedArrays& arrays, const std::vector<Index>& shape) {
  Index length = 0;
  for (const ReducedArray& array : arrays)
    length += array.axis == Axis::row ? rows_of(shape) : columns_of(shape);
  return length;
}

}  // namespace kzero::param
