// The interface through which a family generates tokens one by one. A decoder caches the keys and
// values of earlier positions, so a new token needs a pass over only one row. All parameter units
// of definition.hpp are in memory. There are no gradients.
#pragma once

#include <memory>
#include <span>

#include "model/model.hpp"

namespace kzero::model {

/// A token with its sequence's number in the cache and its position in that sequence.
struct PlacedToken {
  Token token = 0;
  Index sequence = 0;
  Index position = 0;
};

/// All functions are collective over the tensor group. Its ranks pass the same tokens and get the
/// same logits. Positions of a sequence are written in ascending order. Writing a position again
/// discards the later ones. Logits are valid until the next call.
template <class T>
class Decoder {
 public:
  virtual ~Decoder() = default;

  /// Runs tokens of one sequence from position `first`, in passes of DecoderShape::rows rows.
  /// Returns the logits [V] after the last token, on the host. The result depends only on this
  /// sequence's cache.
  virtual std::span<const float> read(Units<const T> parameters, Index sequence, Index first,
                                      std::span<const Token> tokens) = 0;

  /// Runs one token for each of several sequences, at most DecoderShape::sequences. Returns their
  /// logits [rows,V] on the host. A row's bits do not depend on the other rows.
  virtual std::span<const float> step(Units<const T> parameters,
                                      std::span<const PlacedToken> rows) = 0;
};

/// The resources of a decoder. While measuring, `gemm` and the link's communicator are null.
struct DecoderResources {
  DecoderShape shape;
  tensor::Gemm* gemm = nullptr;
  TensorLink link{};
};

/// Creates the decoder of the family that a resolved deck names. Allocates the cache from
/// activations, tokens from io, and the rest from workspace and buckets. Accepts measuring arenas.
template <class T>
std::unique_ptr<Decoder<T>> make_decoder(const deck::Model& model, memory::Arenas& arenas,
                                         const DecoderResources& resources);

}  // namespace kzero::model
