// The linear layers of a block, as the files of its family name them. Adapters, exports and the
// model itself take the names from here.
#pragma once

#include <span>
#include <string>
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

inline constexpr LinearLayer mixtral_layers[] = {
    {"self_attn.q_proj", Product::qkv, ProductPart::q},
    {"self_attn.k_proj", Product::qkv, ProductPart::k},
    {"self_attn.v_proj", Product::qkv, ProductPart::v},
    {"self_attn.o_proj", Product::projection},
    {"block_sparse_moe.w1", Product::up, ProductPart::gate},
    {"block_sparse_moe.w3", Product::up, ProductPart::up},
    {"block_sparse_moe.w2", Product::down}};

/// The layers of each block of a family, in forward order. With experts, those of the feed-forward
/// part are layers of each expert: see expert_path.
constexpr std::span<const LinearLayer> linear_layers(ModelFamily family) {
  if (family == ModelFamily::gpt2) return gpt2_layers;
  if (family == ModelFamily::apertus) return apertus_layers;
  if (family == ModelFamily::mixtral) return mixtral_layers;
  return llama_layers;
}

/// Whether a layer belongs to the feed-forward part.
constexpr bool is_feed_forward(const LinearLayer& layer) {
  return layer.product == Product::up || layer.product == Product::down;
}

/// The path of a layer of a part within its parent: "mlp.experts.3.up_proj" for "mlp.up_proj".
inline std::string path_in(std::string_view part, const LinearLayer& layer) {
  const std::size_t end = layer.path.rfind('.');
  return std::string(layer.path.substr(0, end)) + "." + std::string(part) +
         std::string(layer.path.substr(end));
}

inline std::string expert_path(const LinearLayer& layer, Index expert) {
  return path_in("experts." + std::to_string(expert), layer);
}

/// The name of a shared expert in its parent: Qwen2-MoE's, whose gate's name it begins, or GLM's.
constexpr std::string_view shared_expert(bool has_gate) {
  return has_gate ? "shared_expert" : "shared_experts";
}

/// The path of the layer that computes its gate: "mlp.shared_expert_gate".
inline std::string shared_gate_path(ModelFamily family) {
  const LinearLayer& last = linear_layers(family).back();
  return std::string(last.path.substr(0, last.path.rfind('.'))) + ".shared_expert_gate";
}

}  // namespace kzero::deck
