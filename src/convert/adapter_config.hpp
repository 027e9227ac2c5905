// adapter_config.json, PEFT's description of an adapter. The keys are those of LoraConfig in peft
// 0.21; older and newer files have fewer and more.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "deck/config.hpp"

namespace kzero::convert {

/// What keeps an adapter with this configuration from computing the function that kzero computes
/// with `lora`: each key with its value. `layers` are the names of the model's layers with an
/// adapter, as in PEFT: "model.layers.0.self_attn.q_proj". Spellings of the same function are
/// alike: a rank and a scale may be given for all layers or by patterns, with or without rsLoRA,
/// and layers by their names, paths, a regular expression or "all-linear". A regular expression is
/// not evaluated, because the tensors in the adapter's file tell which layers it has.
std::vector<std::string> adapter_problems(const nlohmann::json& config, const deck::Lora& lora,
                                          const std::vector<std::string>& layers);

/// The key that gives adapters to some of the layers only, with its value; empty if there is none.
std::string partial_layers(const nlohmann::json& config);

}  // namespace kzero::convert
