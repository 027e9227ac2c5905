#include "infer/decoding.hpp"

#include "model/decoder.hpp"

namespace kzero::infer {

namespace {

template <class T>
memory::Arenas measured(const deck::Model& model, model::DecoderResources resources) {
  resources.gemm = nullptr;
  resources.link.comm = nullptr;
  return memory::measured(
      [&](memory::Arenas& arenas) { model::make_decoder<T>(model, arenas, resources); });
}

template <class T>
class TypedDecoding : public Decoding {
 public:
  TypedDecoding(const deck::Model& model, const model::DecoderResources& resources,
                model::Units<const T> parameters, memory::Ledger& ledger,
                std::shared_ptr<const void> owner)
      : owner_(std::move(owner)),
        shape_(resources.shape),
        vocab_(model.vocab),
        units_(parameters.begin(), parameters.end()),
        arenas_(measured<T>(model, resources), ledger),
        decoder_(model::make_decoder<T>(model, arenas_, resources)) {}

  std::span<const float> read(Index sequence, Index first, std::span<const Token> tokens) override {
    return decoder_->read(units_, sequence, first, tokens);
  }
  std::span<const float> step(std::span<const model::PlacedToken> rows) override {
    return decoder_->step(units_, rows);
  }
  const model::DecoderShape& shape() const override { return shape_; }
  Index vocab() const override { return vocab_; }

 private:
  std::shared_ptr<const void> owner_;
  model::DecoderShape shape_;
  Index vocab_;
  std::vector<const T*> units_;
  memory::Arenas arenas_;
  std::unique_ptr<model::Decoder<T>> decoder_;
};

}  // namespace

template <class T>
std::unique_ptr<Decoding> make_decoding(const deck::Model& model,
                                        const model::DecoderResources& resources,
                                        std::span<const T* const> parameters,
                                        memory::Ledger& ledger, std::shared_ptr<const void> owner) {
  return std::make_unique<TypedDecoding<T>>(model, resources, parameters, ledger, std::move(owner));
}

memory::Bytes decoder_bytes(const deck::Model& model, const model::DecoderResources& resources,
                            Dtype precision) {
  return with_type(precision, [&]<class T>(T) { return measured<T>(model, resources).bytes(); });
}

#define KZERO_INSTANTIATE(T)                                                         \
  template std::unique_ptr<Decoding> make_decoding<T>(                               \
      const deck::Model&, const model::DecoderResources&, std::span<const T* const>, \
      memory::Ledger&, std::shared_ptr<const void>);
KZERO_FOR_EACH_DTYPE(KZERO_INSTANTIATE)
#undef KZERO_INSTANTIATE

}  // namespace kzero::infer
