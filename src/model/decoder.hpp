// Generates tokens one by one with a model of any precision. A decoder caches the keys and values
// of earlier positions, so a new token needs a pass over only one row. All parameter units of
// definition.hpp are in memory. There are no gradients.
#pragma once

#include <memory>
#include <span>

#include "memory/ledger.hpp"
#include "model/definition.hpp"

namespace kzero::model {

struct DecoderResources;  // model.hpp

/// A token with its sequence's number in the cache and its position in that sequence.
struct PlacedToken {
  Token token = 0;
  Index sequence = 0;
  Index position = 0;
};

/// All functions are collective over the tensor group. Its ranks pass the same tokens and get the
/// same logits. Positions of a sequence are written in ascending order. Writing position 0 again
/// discards the later ones: a layer with a window no longer has those before it. Logits are valid
/// until the next call.
class Decoder {
 public:
  Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;
  virtual ~Decoder() = default;

  /// Runs tokens of one sequence from position `first`, in passes of DecoderShape::rows rows.
  /// Returns the logits [V] after the last token, on the host. The result depends only on this
  /// sequence's cache.
  virtual std::span<const float> read(Index sequence, Index first,
                                      std::span<const Token> tokens) = 0;

  /// Runs one token for each of several sequences, at most DecoderShape::sequences. Returns their
  /// logits [rows,V] on the host. A row's bits do not depend on the other rows.
  virtual std::span<const float> step(std::span<const PlacedToken> rows) = 0;

  virtual const DecoderShape& shape() const = 0;
  virtual Index vocab() const = 0;
};

/// Creates the decoder of the family that a resolved deck names. Its positions are at most
/// model.sequence, which learned positions do not exceed. Takes the cache from activations,
/// tokens from io, and the rest from workspace and buckets, and enters them in `ledger`. The
/// parameters' units, `gemm`, the link's communicator and `ledger` must outlive it. `owner` lives
/// as long as the decoder.
template <class T>
std::unique_ptr<Decoder> make_decoder(const deck::Model& model, const DecoderResources& resources,
                                      std::span<const T* const> parameters, memory::Ledger& ledger,
                                      std::shared_ptr<const void> owner = nullptr);

/// The bytes that the decoder takes, by category. Uses no library or communicator.
memory::Bytes decoder_bytes(const deck::Model& model, const DecoderResources& resources,
                            Dtype precision);

}  // namespace kzero::model
