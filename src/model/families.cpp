#include "model/transformer_definition.hpp"

namespace kzero::model {

// Both families of the deck are transformers. Another kind of model is chosen here by its family.
std::shared_ptr<const Definition> define(const deck::Config& config) {
  return define_transformer(config);
}

}  // namespace kzero::model
