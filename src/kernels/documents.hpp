// Sequences that hold several documents, each computed as if it were alone: attention never crosses
// a document, and positions restart at 0 in each.
#pragma once

#include <cstdint>

#include "tensor/view.hpp"

namespace kzero::kernels {

using tensor::Vector;

/// The document of each row of a batch [N], as positions [begin, end) in the row's sequence. Both
/// are empty if each sequence is one document.
struct Documents {
  Vector<const std::int32_t> begin, end;

  bool empty() const { return begin.size() == 0; }
};

/// Computes [begin, end) of each row for attention within a window: the row sees the keys from
/// begin on, of its document and among the last `window` rows up to itself, and rows before end see
/// it. `sequence` rows are a sequence. begin and end have all rows [N].
void window_of(const tensor::Execution& exec, const Documents& documents, Index window,
               Index sequence, const Vector<std::int32_t>& begin, const Vector<std::int32_t>& end);

/// The place of a matrix [n,D] in its micro-batch: row i is row first + i of sequences of
/// `sequence` rows.
struct StreamRows {
  Index first = 0, sequence = 1;
};

/// The position of each of some rows of a batch within its document.
struct RowPositions {
  const std::int32_t* begin;  // of the documents of all rows; null if each sequence is one document
  StreamRows rows;

  RowPositions(const Documents& documents, const StreamRows& of_rows)
      : begin(documents.empty() ? nullptr : documents.begin.data()), rows(of_rows) {}

  KOKKOS_INLINE_FUNCTION Index operator()(Index i) const {
    const Index row = rows.first + i;
    return row % rows.sequence - (begin == nullptr ? 0 : begin[row]);
  }
};

}  // namespace kzero::kernels
