#include "deck/linear_layers.hpp"

namespace kzero::deck {

namespace {

constexpr LinearLayer of_gpt2[] = {{"attn.c_attn", Product::qkv},
                                   {"attn.c_proj", Product::projection},
                                   {"mlp.c_fc", Product::up},
                                   {"mlp.c_proj", Product::down}};

constexpr LinearLayer of_llama[] = {{"self_attn.q_proj", Product::qkv, ProductPart::q},
                                    {"self_attn.k_proj", Product::qkv, ProductPart::k},
                                    {"self_attn.v_proj", Product::qkv, ProductPart::v},
                                    {"self_attn.o_proj", Product::projection},
                                    {"mlp.gate_proj", Product::up, ProductPart::gate},
                                    {"mlp.up_proj", Product::up, ProductPart::up},
                                    {"mlp.down_proj", Product::down}};

}  // namespace

std::span<const LinearLayer> linear_layers(ModelFamily family) {
  if (family == ModelFamily::gpt2) return of_gpt2;
  return of_llama;
}

}  // namespace kzero::deck
