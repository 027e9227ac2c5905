// The keys that a query sees: those up to its own, and if a sequence holds several documents, only
// those of the query's document. Training may drop some of their weights. Kernels are compiled for
// each mask, so that documents and dropout cost nothing where there are none.
#pragma once

#include <Kokkos_NumericTraits.hpp>

#include "kernels/attention/attention.hpp"

namespace kzero::kernels {

/// Query q sees the keys [first_key(q), q]. The queries [k, end_of_queries(k)) see key k. Both
/// functions never decrease along a sequence. Rows past the end count as the last row.
struct CausalMask {
  static constexpr bool has_documents = false, drops = false;
  static constexpr float lowest_score = -Kokkos::Experimental::infinity_v<float>;

  Index length;  // of a sequence

  KOKKOS_INLINE_FUNCTION CausalMask of_sequence(Index /*number*/) const { return *this; }
  KOKKOS_INLINE_FUNCTION Index first_key(Index /*query*/) const { return 0; }
  KOKKOS_INLINE_FUNCTION Index end_of_queries(Index /*key*/) const { return length; }
};

struct DocumentMask {
  static constexpr bool has_documents = true, drops = false;
  // Where a running maximum begins. It is finite because a row may see no key of the first tiles,
  // and minus infinity less itself is NaN.
  static constexpr float lowest_score = -Kokkos::Experimental::finite_max_v<float>;

  const std::int32_t *begin, *end;  // of the documents, from the first row of a sequence on
  Index length;

  KOKKOS_INLINE_FUNCTION DocumentMask of_sequence(Index number) const {
    return {begin + number * length, end + number * length, length};
  }
  KOKKOS_INLINE_FUNCTION Index first_key(Index query) const { return begin[row(query)]; }
  KOKKOS_INLINE_FUNCTION Index end_of_queries(Index key) const { return end[row(key)]; }
  KOKKOS_INLINE_FUNCTION Index row(Index i) const { return i < length ? i : length - 1; }
};

/// Either of these masks, with dropout of weights. Row head * T + query and column `key` of the
/// sequence's draws belong to a weight, with the number of the head in the full model. Nothing
/// else counts: ranks, tiles and directions have to agree.
template <class Mask>
struct DroppingMask : Mask {
  static constexpr bool drops = true;

  DropoutRows draws;  // of the sequence
  Index first_head;

  KOKKOS_INLINE_FUNCTION DroppingMask(const Mask& seen, const DropoutRows& drawn, Index head)
      : Mask(seen), draws(drawn), first_head(head) {}

  KOKKOS_INLINE_FUNCTION DroppingMask of_sequence(Index number) const {
    DropoutRows of_number = draws;
    of_number.sequence += static_cast<std::uint64_t>(number) * Dropout::step;
    return {Mask::of_sequence(number), of_number, first_head};
  }
  /// The row of draws of a query, of head `head` of this rank.
  KOKKOS_INLINE_FUNCTION Index draw_row(Index head, Index query) const {
    return (first_head + head) * this->length + query;
  }
};

/// Returns x, of a weight or of its gradient, after the dropout of a mask that has it.
template <class Mask>
KOKKOS_INLINE_FUNCTION float dropped(const Mask& mask, Index head, Index query, Index key,
                                     float x) {
  if constexpr (Mask::drops) {
    return mask.draws.apply(mask.draws.word(mask.draw_row(head, query), key), x);
  } else {
    return x;
  }
}

/// Calls f(mask) with the mask of a batch whose sequences have `length` tokens.
template <class F>
void with_mask(const AttentionRows& rows, Index length, const F& f) {
  const auto with_dropout = [&](const auto& mask) {
    if (rows.dropout.is_on()) {
      f(DroppingMask(mask, DropoutRows(rows.dropout, 0, length), rows.first_head));
    } else {
      f(mask);
    }
  };
  if (rows.documents.empty()) {
    with_dropout(CausalMask{length});
  } else {
    with_dropout(DocumentMask{rows.documents.begin.data(), rows.documents.end.data(), length});
  }
}

}  // namespace kzero::kernels
