// The deck's families implemented by this folder's transformer. An entry has the parts of the
// family's blocks and its parameter table.
#pragma once

#include <span>

#include "model/unit_specs.hpp"

namespace kzero::model {

std::unique_ptr<UnitSpecs> gpt2_specs(const TransformerShape& shape, const deck::Model& model);
std::unique_ptr<UnitSpecs> llama_specs(const TransformerShape& shape, const deck::Model& model);

inline constexpr LinearLayer gpt2_layers[] = {{"attn.c_attn", Site::qkv},
                                              {"attn.c_proj", Site::projection},
                                              {"mlp.c_fc", Site::up},
                                              {"mlp.c_proj", Site::down}};

inline constexpr LinearLayer llama_layers[] = {{"self_attn.q_proj", Site::qkv, SitePart::q},
                                               {"self_attn.k_proj", Site::qkv, SitePart::k},
                                               {"self_attn.v_proj", Site::qkv, SitePart::v},
                                               {"self_attn.o_proj", Site::projection},
                                               {"mlp.gate_proj", Site::up, SitePart::gate},
                                               {"mlp.up_proj", Site::up, SitePart::up},
                                               {"mlp.down_proj", Site::down}};

struct TransformerFamily {
  deck::ModelFamily family;
  TransformerParts parts;
  std::string_view blocks;              // the names of block i's parameters begin with it and i
  std::span<const LinearLayer> layers;  // of a block, in forward order
  /// Creates the units of the parameter table with the names and shapes of the family's files.
  std::unique_ptr<UnitSpecs> (*specs)(const TransformerShape& shape, const deck::Model& model);
};

inline constexpr TransformerFamily transformer_families[] = {
    {deck::ModelFamily::gpt2,
     {.norm = NormKind::layer_norm,
      .positions = PositionKind::learned,
      .activation = ActivationKind::gelu,
      .biases = true,
      .weight_layout = WeightLayout::in_out,
      .drops_embedding = true},
     "h.",
     gpt2_layers,
     gpt2_specs},
    {deck::ModelFamily::llama,
     {.norm = NormKind::rms_norm,
      .positions = PositionKind::rotary,
      .activation = ActivationKind::swiglu,
      .biases = false,
      .weight_layout = WeightLayout::out_in,
      .drops_embedding = false},
     "model.layers.",
     llama_layers,
     llama_specs},
};

/// Returns the family's entry. Throws Error(other) if the family is not a transformer, which is a
/// programming error because families.cpp selects the definition.
const TransformerFamily& transformer_family(deck::ModelFamily family);

}  // namespace kzero::model
