// Traces of a transformer's operations, on shapes alone.
#pragma once

#include "deck/config.hpp"
#include "param/trace.hpp"

namespace kzero::model {

/// The trace of a training micro-batch: units forward, the head with its loss, the other units
/// backward. The embedding's backward needs no parameters. A tied head reads the embedding's
/// parameters and writes the first version of their gradient. The only forward values that a
/// recomputed block's backward reads are its input and its parameters.
/// With adapters, every block also reads its unit of them, only these have gradients, and backward
/// ends in the first block.
param::Trace transformer_trace(const deck::Model& model, deck::RecomputeMode recompute,
                               const deck::Lora& lora = {});

/// The trace of a validation micro-batch, without gradients.
param::Trace transformer_validation_trace(const deck::Model& model, const deck::Lora& lora = {});

}  // namespace kzero::model
