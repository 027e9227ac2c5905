// A model that generates, of any precision, with its parameters in memory: model/decoder.hpp behind
// one interface.
#pragma once

#include <memory>
#include <span>

#include "deck/config.hpp"
#include "memory/ledger.hpp"
#include "model/definition.hpp"

namespace kzero::model {
struct DecoderResources;
struct PlacedToken;
}  // namespace kzero::model

namespace kzero::infer {

/// Functions are collective over the tensor group; see model::Decoder.
class Decoding {
 public:
  virtual ~Decoding() = default;

  virtual std::span<const float> read(Index sequence, Index first,
                                      std::span<const Token> tokens) = 0;
  virtual std::span<const float> step(std::span<const model::PlacedToken> rows) = 0;

  virtual const model::DecoderShape& shape() const = 0;
  virtual Index vocab() const = 0;
};

/// Makes a decoder that owns its arenas, takes its memory from them and enters it in `ledger`. The
/// parameters' units, `gemm`, the link's communicator and `ledger` must outlive it. `owner` lives
/// as long as the decoder.
template <class T>
std::unique_ptr<Decoding> make_decoding(const deck::Model& model,
                                        const model::DecoderResources& resources,
                                        std::span<const T* const> parameters,
                                        memory::Ledger& ledger,
                                        std::shared_ptr<const void> owner = nullptr);

/// The bytes that the decoder uses, by category.
memory::Bytes decoder_bytes(const deck::Model& model, const model::DecoderResources& resources,
                            Dtype precision);

}  // namespace kzero::infer
