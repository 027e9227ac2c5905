#include "model/transformer_definition.hpp"

namespace kzero::model {

// Both families of the deck are transformers. Select other kinds of models by their family here.
std::shared_ptr<const Definition> define(const deck::Config& config) {
  return define_transformer(config);
}

std::vector<std::string> parameter_names(const deck::Config& config) {
  std::vector<std::string> names;
  for (const param::UnitSpec& unit : define(config)->table({})) {
    for (const param::ParamSpec& parameter : unit.params) names.push_back(parameter.name);
  }
  return names;
}

}  // namespace kzero::model
