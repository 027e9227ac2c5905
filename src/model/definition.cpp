#include "model/definition.hpp"

#include "model/transformer_definition.hpp"

namespace kzero::model {

double flops_per_token(const param::Trace& training) {
  double sum = 0;
  for (const param::Operation& operation : training) sum += operation.work.operations;
  return sum;
}

Recomputed recomputed_per_token(const param::Trace& training) {
  Recomputed sum;
  for (const param::Operation& operation : training) {
    sum.operations += operation.work.recomputed;
    sum.elements += operation.work.recomputed_elements;
    sum.offloaded += 2 * operation.work.kept;  // read and written
  }
  return sum;
}

// Both families of the deck are transformers. Select other kinds of models by their family here.
std::shared_ptr<const Definition> define(const deck::Config& config) {
  return std::make_shared<TransformerDefinition>(config.model, config.recompute, config.train,
                                                 config.lora, config.preference.loss,
                                                 deck::distills(config.distill));
}

std::vector<std::string> parameter_names(const deck::Config& config) {
  std::vector<std::string> names;
  for (const param::UnitSpec& unit : define(config)->table({})) {
    for (const param::ParamSpec& parameter : unit.params) names.push_back(parameter.name);
  }
  return names;
}

}  // namespace kzero::model
