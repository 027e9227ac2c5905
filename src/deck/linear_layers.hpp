// The linear layers of a block, as the files of its family name them. Adapters, exports and the
// model itself take the names from here.
#pragma once

#include <span>
#include <string_view>

#include "deck/config.hpp"

namespace kzero::deck {

/// The matrix products of a block, in forward order. Layers that share an input are one product.
enum class Product { qkv, projection, up, down };

/// The columns of a product's result that belong to a layer.
enum class ProductPart { all, q, k, v, gate, up };

struct LinearLayer {
  std::string_view path;  // within the block: "self_attn.q_proj"
  Product product = Product::qkv;
  ProductPart part = ProductPart::all;

  /// The last part of the path, which lora.targets contains.
  constexpr std::string_view name() const { return path.substr(path.rfind('.') + 1); }
};

inline constexpr LinearLayer gpt2_layers[] = {{"attn.c_attn", Product::qkv},
                                              {"attn.c_proj", Product::projection},
                                              {"mlp.c_fc", Product::up},
                                              {"mlp.c_proj", Product::down}};

inline constexpr LinearLayer llama_layers[] = {{"self_attn.q_proj", Product::qkv, ProductPart::q},
                                               {"self_attn.k_proj", Product::qkv, ProductPart::k},
                                               {"self_attn.v_proj", Product::qkv, ProductPart::v},
                                               {"self_attn.o_proj", Product::projection},
                                               {"mlp.gate_proj", Product::up, ProductPart::gate},
                                               {"mlp.up_proj", Product::up, ProductPart::up},
                                               {"mlp.down_proj", Product::down}};

inline constexpr LinearLayer apertus_layers[] = {{"self_attn.q_proj", Product::qkv, ProductPart::q},
                                                 {"self_attn.k_proj", Product::qkv, ProductPart::k},
                                                 {"self_attn.v_proj", Product::qkv, ProductPart::v},
                                                 {"self_attn.o_proj", Product::projection},
                                                 {"mlp.up_proj", Product::up, ProductPart::up},
                                                 {"mlp.down_proj", Product::down}};

/// The layers of each block of a family, in forward order.
constexpr std::span<const LinearLayer> linear_layers(ModelFamily family) {
  if (family == ModelFamily::gpt2) return gpt2_layers;
  if (family == ModelFamily::apertus) return apertus_layers;
  return llama_layers;
}

}  // namespace kzero::deck
