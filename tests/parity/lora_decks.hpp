// Decks with adapters (LoRA) on top of the small deck.
#pragma once

#include "support/training.hpp"

namespace kzero::tests {

using Targets = std::vector<std::string>;

inline const Targets all_of_gpt2{"c_attn", "c_proj", "c_fc"};
inline const Targets all_of_llama{"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                  "gate_proj", "up_proj", "down_proj"};

/// Nothing opens model.initial here: the frozen weights are drawn from train.seed.
inline deck::Config with_lora(deck::Config config, const Targets& targets = {}) {
  const bool is_llama = config.model.family == deck::ModelFamily::llama;
  config.model.initial = "not opened";
  config.lora = {.rank = 3, .alpha = 4.5, .targets = targets};
  if (targets.empty()) config.lora.targets = is_llama ? all_of_llama : all_of_gpt2;
  return config;
}

inline deck::Config lora_deck(Index tensor, Dtype precision = Dtype::fp32) {
  deck::Config config = small_deck(precision);
  config.model.layers = 2;
  config.model.heads = 8, config.model.hidden = 24, config.model.feed_forward = 53;
  config.grid.tensor = tensor;
  config.train.global_batch = 2 * launch_ranks() / tensor;
  return config;
}

inline std::vector<Index> lora_tensor_sizes(Index min) {
  std::vector<Index> sizes;
  for (const Index tensor : {1, 2, 4}) {
    if (tensor >= min && launch_ranks() % tensor == 0) sizes.push_back(tensor);
  }
  return sizes;
}

}  // namespace kzero::tests
