// The part of the logits in memory at a time: the rows of a chunk and their stride.
#pragma once

#include "model/shape.hpp"
#include "tensor/view.hpp"

namespace kzero::model {

/// A chunk of logits [rows,V of this tensor rank]. Rows are `stride` elements apart. GEMMs compute
/// with `columns` columns. Those from V on are scratch in the logits and 0 in their gradient.
struct LogitsChunk {
  Index rows = 0;
  Index stride = 0;
  Index columns = 0;
};

/// Chooses the chunk for a micro-batch of `rows` rows. All tensor ranks use the same rows because
/// they communicate chunk by chunk.
LogitsChunk logits_chunk(Index rows, const TransformerShape& shape, Dtype type,
                         bool on_device = !tensor::on_host);

/// The elements behind the output projection's matrix [V of this tensor rank,D] that its GEMMs read
/// in 16 bits. They must be finite, and do not affect a result.
Index read_behind_output(const TransformerShape& shape, bool on_device = !tensor::on_host);

}  // namespace kzero::model
