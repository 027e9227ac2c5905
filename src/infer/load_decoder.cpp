#include "infer/load_decoder.hpp"

#include "base/error.hpp"
#include "grid/agreement.hpp"
#include "infer/parameters.hpp"
#include "model/decoder.hpp"

namespace kzero::infer {

namespace {

/// All units of a model, in their own memory.
template <class T>
struct DecoderWeights {
  ForwardBlueprint blueprint;
  memory::Arenas arenas;
  Parameters<T> parameters;

  DecoderWeights(const deck::Config& config, engine::Machinery& m)
      : blueprint(config, m.grid.data().size(), engine::tensor_rank(m.grid)),
        arenas(measured(blueprint, m.grid.data().rank()), m.ledger),
        parameters(arenas, blueprint, m.grid.data().rank()) {}

  static memory::Arenas measured(const ForwardBlueprint& blueprint, Index data_rank) {
    return memory::measured(
        [&](memory::Arenas& measuring) { Parameters<T>(measuring, blueprint, data_rank); });
  }
};

template <class T>
memory::Bytes weight_bytes(const deck::Config& config, const model::TensorRank& tensor,
                           Index data_ranks) {
  return DecoderWeights<T>::measured(ForwardBlueprint(config, data_ranks, tensor), 0).bytes();
}

template <class T>
std::unique_ptr<model::Decoder> load_as(const Source& source, const model::DecoderShape& shape,
                                        engine::Machinery& m) {
  std::shared_ptr<DecoderWeights<T>> weights;
  std::unique_ptr<model::Decoder> decoder;
  grid::collectively(m.grid.world(), [&] {
    weights = std::make_shared<DecoderWeights<T>>(source.config, m);
    const model::DecoderResources resources{
        shape, m.gemm.get(), {engine::tensor_rank(m.grid), m.tensor.get()}};
    decoder = model::make_decoder<T>(source.config.model, resources, weights->parameters.units(),
                                     m.ledger, weights);
  });
  weights->parameters.load(tensor::Execution(), source.values, m);
  return decoder;
}

}  // namespace

memory::Bytes load_bytes(const Source& source, const model::DecoderShape& shape,
                         const model::TensorRank& tensor, Index data_ranks) {
  const Dtype precision = source.config.train.precision;
  memory::Bytes bytes = model::decoder_bytes(source.config.model,
                                             {.shape = shape, .link = {.rank = tensor}}, precision);
  const memory::Bytes weights = with_type(
      precision, [&]<class T>(T) { return weight_bytes<T>(source.config, tensor, data_ranks); });
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] += weights[i];
  return bytes;
}

std::unique_ptr<model::Decoder> load_decoder(const Source& source, const model::DecoderShape& shape,
                                             engine::Machinery& machinery, Index node_ranks) {
  grid::collectively(machinery.grid.world(), [&] {
    engine::require_memory(load_bytes(source, shape, engine::tensor_rank(machinery.grid),
                                      machinery.grid.data().size()),
                           node_ranks,
                           "a smaller --batch or --max-tokens, more --tensor ranks, or a 16-bit "
                           "--precision");
  });
  return with_type(source.config.train.precision,
                   [&]<class T>(T) { return load_as<T>(source, shape, machinery); });
}

}  // namespace kzero::infer
