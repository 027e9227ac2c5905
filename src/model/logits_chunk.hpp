// The part of the logits in memory at a time: the rows of a chunk and their stride.
#pragma once

#include "model/transformer_shape.hpp"
#include "tensor/view.hpp"

namespace kzero::model {

/// A chunk of logits [rows,V of this tensor rank]. Rows are `stride` elements apart.
struct LogitsChunk {
  Index rows = 0;
  Index stride = 0;
};

/// Chooses the chunk for a micro-batch of `rows` rows. All tensor ranks use the same rows because
/// they communicate chunk by chunk.
LogitsChunk logits_chunk(Index rows, const TransformerShape& shape,
                         bool on_device = !tensor::on_host);

}  // namespace kzero::model
