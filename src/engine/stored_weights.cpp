#include "engine/stored_weights.hpp"

#include "model/definition.hpp"

namespace kzero::engine {

std::vector<checkpoint::Parameter> saved_parameters(const checkpoint::Manifest& manifest) {
  deck::Config config;
  config.model = manifest.model;
  if (manifest.adapters) config.lora = manifest.adapters->lora;
  return checkpoint::parameters_of(param::trained_of(model::define(config)->table({})));
}

}  // namespace kzero::engine
