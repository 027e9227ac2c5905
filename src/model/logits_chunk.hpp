// How much of the logits exists at once: the rows of a chunk, and the stride of their memory.
#pragma once

#include "model/transformer_shape.hpp"
#include "tensor/view.hpp"

namespace kzero::model {

/// A chunk of logits [rows,V], rows `stride` elements apart, V of this tensor rank.
struct LogitsChunk {
  Index rows = 0;
  Index stride = 0;
};

/// Chooses the chunk of a micro-batch of `rows` rows. Its rows are the same on all tensor ranks,
/// which communicate chunk by chunk.
LogitsChunk logits_chunk(Index rows, const TransformerShape& shape,
                         bool on_device = !tensor::on_host);

}  // namespace kzero::model
