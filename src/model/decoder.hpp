// A model that writes: the part of the seam behind which a family generates tokens one after
// another. A decoder keeps the keys and values of every sequence's earlier positions, so that a
// new token costs one pass over one row. Parameters are the units of definition.hpp, all in memory;
// there are no gradients.
#pragma once

#include <memory>
#include <span>

#include "model/model.hpp"

namespace kzero::model {

/// The sizes that a decoder has memory for.
struct DecoderShape {
  Index sequences = 0;  // in the cache at once
  Index positions = 0;  // of each, at most model.sequence
  Index rows = 0;       // of a pass over a prompt
};

/// A token at its place: the number of its sequence in the cache, and its position there.
struct PlacedToken {
  Token token = 0;
  Index sequence = 0;
  Index position = 0;
};

/// All functions are collective over the tensor group, whose ranks pass the same tokens and get the
/// same logits. Positions of a sequence are written in ascending order; to write one again discards
/// those behind it. Logits are valid until the next call.
template <class T>
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Runs the tokens of one sequence, the first at position `first`, in passes of
  /// DecoderShape::rows. Returns the logits [V] behind the last token, on the host. The result
  /// depends on nothing else in the cache.
  virtual std::span<const float> read(Units<const T> parameters, Index sequence, Index first,
                                      std::span<const Token> tokens) = 0;

  /// Runs one token of each of several sequences, at most DecoderShape::sequences. Returns their
  /// logits [rows,V], on the host. A row's bits do not depend on the other rows.
  virtual std::span<const float> step(Units<const T> parameters,
                                      std::span<const PlacedToken> rows) = 0;
};

/// The means that a decoder computes with; `gemm` and the link's communicator are null while
/// measuring.
struct DecoderResources {
  DecoderShape shape;
  tensor::Gemm* gemm = nullptr;
  TensorLink link{};
};

/// Makes the decoder of the family that a resolved deck asks for. Takes the cache from the
/// activations category, tokens from io, all else from workspace and buckets; measuring arenas too.
template <class T>
std::unique_ptr<Decoder<T>> make_decoder(const deck::Model& model, memory::Arenas& arenas,
                                         const DecoderResources& resources);

}  // namespace kzero::model
