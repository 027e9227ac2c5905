// Traces of the operations of a GPT, on shapes alone.
#pragma once

#include "deck/config.hpp"
#include "param/trace.hpp"

namespace kzero::model {

/// The trace of a micro-batch of training: units forward, the head with its loss, the other units
/// backward. The embedding's backward needs no parameters; a tied head reads the embedding's and
/// writes the first version of its gradient. The backward of a recomputed block reads its input and
/// its parameters, and no other forward value.
param::Trace transformer_trace(const deck::Model& model, deck::RecomputeMode recompute);

/// The trace of a micro-batch of validation, without gradients.
param::Trace transformer_validation_trace(const deck::Model& model);

}  // namespace kzero::model
