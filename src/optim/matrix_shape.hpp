// The shape of a hidden matrix, and the operations that its iteration takes: for plans.
#pragma once

#include "base/types.hpp"

namespace kzero::optim {

struct MatrixShape {
  Index rows = 0, columns = 0;

  Index elements() const { return rows * columns; }
  Index shorter() const { return rows < columns ? rows : columns; }
};

/// Operations of the products of a complete Newton-Schulz iteration (newton_schulz.hpp). A
/// multiplication and an addition count as two.
double newton_schulz_operations(const MatrixShape& shape);

}  // namespace kzero::optim
