// GPT-2 as a table of units, before any memory exists: embedding, one unit a block, head. Names and
// shapes are those of Hugging Face's GPT-2 files.
#pragma once

#include "deck/config.hpp"
#include "param/spec.hpp"

namespace kzero::model {

struct GptShape {
  Index layers = 0, hidden = 0, heads = 0, sequence = 0, vocab = 0, feed_forward = 0;
  bool tied_embeddings = true;
  float layernorm_eps = 1e-5F;

  explicit GptShape(const deck::Model& model);
};

/// Units in forward order: 0 is the embedding, 1 .. L the blocks, L + 1 the head. Matrices start
/// from a normal law of the deck's init_std, those that write to the residual stream from one 1 /
/// sqrt(2 L) narrower.
param::Table gpt_table(const deck::Model& model);

/// Training arithmetic of one token: 6 operations a parameter in a matrix product, and causal
/// attention.
double flops_per_token(const deck::Model& model);

/// What activation checkpointing adds to that for one token.
struct Recomputed {
  double operations = 0;  // of products and attention, with the passes between them
  double elements = 0;    // read and written by passes alone, and by moves to the host and back
};

Recomputed recomputed_per_token(const deck::Model& model, const deck::Recompute& recompute);

}  // namespace kzero::model
