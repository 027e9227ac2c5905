// Products of a few rows on hosts. The weight streams through a core's vector registers once for
// all rows.
#pragma once

#include "kernels/few_rows.hpp"

namespace kzero::kernels {

/// The operands in the form that kernels use. bias and addend may be null.
template <class T, class Out>
struct FewRowsProduct {
  const T *x, *weight, *bias, *addend;
  Out* y;
  Index rows, in, out;

  KOKKOS_INLINE_FUNCTION void store(Index i, Index column, float sum) const {
    if (bias != nullptr) sum += static_cast<float>(bias[column]);
    if (addend != nullptr) sum += static_cast<float>(addend[i * out + column]);
    y[i * out + column] = static_cast<Out>(sum);
  }
};

namespace host {

/// Multiplies by a weight [K,N].
template <class T, class Out>
void few_rows_in_out(const Execution& exec, const FewRowsProduct<T, Out>& product);

/// Multiplies by a weight [N,K].
template <class T, class Out>
void few_rows_out_in(const Execution& exec, const FewRowsProduct<T, Out>& product);

}  // namespace host

}  // namespace kzero::kernels
