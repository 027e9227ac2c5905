#include "model/transformer_definition.hpp"

namespace kzero::model {

// Both families of the deck are transformers. Select other kinds of models by their family here.
std::shared_ptr<const Definition> define(const deck::Config& config) {
  return define_transformer(config);
}

}  // namespace kzero::model
