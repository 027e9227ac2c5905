// What the units of a GPT read and write, on shapes alone.
#pragma once

#include "deck/config.hpp"
#include "param/trace.hpp"

namespace kzero::model {

/// A micro-batch of training: units forward, the head with its loss, the other units backward. The
/// embedding's backward needs no parameters; a tied head reads the embedding's and writes the first
/// version of its gradient. The backward of a block that is run again reads its input and its
/// parameters, and nothing else that forward left.
param::Trace gpt_trace(const deck::Model& model, deck::RecomputeMode recompute);

/// A micro-batch of validation: no gradients.
param::Trace gpt_validation_trace(const deck::Model& model);

}  // namespace kzero::model
