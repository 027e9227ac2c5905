// The keys that a query sees: those up to its own, and if a sequence holds several documents, only
// those of the query's document. Kernels are compiled for each mask, so that documents cost nothing
// where there are none.
#pragma once

#include <Kokkos_NumericTraits.hpp>

#include "kernels/documents.hpp"

namespace kzero::kernels {

/// Query q sees the keys [first_key(q), q]. The queries [k, end_of_queries(k)) see key k. Both
/// functions never decrease along a sequence. Rows past the end count as the last row.
struct CausalMask {
  static constexpr bool has_documents = false;
  static constexpr float least_score = -Kokkos::Experimental::infinity_v<float>;

  Index length;  // of a sequence

  KOKKOS_INLINE_FUNCTION CausalMask of_sequence(Index /*number*/) const { return *this; }
  KOKKOS_INLINE_FUNCTION Index first_key(Index /*query*/) const { return 0; }
  KOKKOS_INLINE_FUNCTION Index end_of_queries(Index /*key*/) const { return length; }
};

struct DocumentMask {
  static constexpr bool has_documents = true;
  // Where a running maximum begins. It is finite because a row may see no key of the first tiles,
  // and minus infinity less itself is NaN.
  static constexpr float least_score = -Kokkos::Experimental::finite_max_v<float>;

  const std::int32_t *begin, *end;  // of the documents, from the first row of a sequence on
  Index length;

  KOKKOS_INLINE_FUNCTION DocumentMask of_sequence(Index number) const {
    return {begin + number * length, end + number * length, length};
  }
  KOKKOS_INLINE_FUNCTION Index first_key(Index query) const { return begin[row(query)]; }
  KOKKOS_INLINE_FUNCTION Index end_of_queries(Index key) const { return end[row(key)]; }
  KOKKOS_INLINE_FUNCTION Index row(Index i) const { return i < length ? i : length - 1; }
};

/// Calls f(mask) with the mask of a batch whose sequences have `length` tokens.
template <class F>
void with_mask(const Documents& documents, Index length, const F& f) {
  if (documents.empty()) {
    f(CausalMask{length});
  } else {
    f(DocumentMask{documents.begin.data(), documents.end.data(), length});
  }
}

}  // namespace kzero::kernels
