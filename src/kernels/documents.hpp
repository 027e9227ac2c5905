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
