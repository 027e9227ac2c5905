// The deck's families implemented by this folder's transformer. An entry has the parts of the
// family's blocks and its parameter table.
#pragma once

#include "model/unit_specs.hpp"

namespace kzero::model {

std::unique_ptr<UnitSpecs> gpt2_specs(const TransformerShape& shape, const deck::Model& model);
std::unique_ptr<UnitSpecs> llama_specs(const TransformerShape& shape, const deck::Model& model);

struct TransformerFamily {
  deck::ModelFamily family;
  TransformerParts parts;
  /// Creates the units of the parameter table with the names and shapes of the family's files.
  std::unique_ptr<UnitSpecs> (*specs)(const TransformerShape& shape, const deck::Model& model);
};

inline constexpr TransformerFamily transformer_families[] = {
    {deck::ModelFamily::gpt2,
     {.norm = NormKind::layer_norm,
      .positions = PositionKind::learned,
      .activation = ActivationKind::gelu,
      .biases = true,
      .weight_layout = WeightLayout::in_out},
     gpt2_specs},
    {deck::ModelFamily::llama,
     {.norm = NormKind::rms_norm,
      .positions = PositionKind::rotary,
      .activation = ActivationKind::swiglu,
      .biases = false,
      .weight_layout = WeightLayout::out_in},
     llama_specs},
};

/// Returns the family's entry. Throws Error(other) if the family is not a transformer, which is a
/// programming error because families.cpp selects the definition.
const TransformerFamily& transformer_family(deck::ModelFamily family);

}  // namespace kzero::model
