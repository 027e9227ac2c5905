#include "model/transformer_families.hpp"

namespace kzero::model {

namespace {

using param::Init;

/// Llama, Mistral, Qwen2, Qwen3: linear weights are [out, in]. The parameters of one GEMM are
/// adjacent: q, k and v, their biases, and gate and up.
class LlamaSpecs : public UnitSpecs {
 public:
  using UnitSpecs::UnitSpecs;

  param::UnitSpec embedding() const override {
    return {"embedding", {rows("model.embed_tokens.weight", vocab_, s_.hidden, std_)}};
  }

  param::UnitSpec block(Index i) const override {
    const std::string at = "model.layers." + std::to_string(i) + ".";
    const std::string attention = at + "self_attn.", mlp = at + "mlp.";
    const Index d = s_.hidden;
    param::UnitSpec unit{"block " + std::to_string(i),
                         {vector(at + "input_layernorm.weight", d, Init::ones),
                          hidden(rows(attention + "q_proj.weight", width_, d, std_)),
                          hidden(rows(attention + "k_proj.weight", kv_width_, d, std_)),
                          hidden(rows(attention + "v_proj.weight", kv_width_, d, std_))}};
    const auto add = [&](param::ParamSpec p) { unit.params.push_back(std::move(p)); };
    if (s_.qkv_bias) {
      add(part(attention + "q_proj.bias", 1, width_));
      add(part(attention + "k_proj.bias", 1, kv_width_));
      add(part(attention + "v_proj.bias", 1, kv_width_));
    }
    if (s_.qk_norm) {
      add(vector(attention + "q_norm.weight", s_.head_dim, Init::ones));
      add(vector(attention + "k_norm.weight", s_.head_dim, Init::ones));
    }
    add(hidden(columns(attention + "o_proj.weight", d, 1, width_, residual_std_)));
    add(vector(at + "post_attention_layernorm.weight", d, Init::ones));
    add(hidden(rows(mlp + "gate_proj.weight", feed_forward_, d, std_)));
    add(hidden(rows(mlp + "up_proj.weight", feed_forward_, d, std_)));
    add(hidden(columns(mlp + "down_proj.weight", d, 1, feed_forward_, residual_std_)));
    return unit;
  }

  param::UnitSpec head() const override {
    param::UnitSpec unit{"head", {vector("model.norm.weight", s_.hidden, Init::ones)}};
    if (!s_.tied_embeddings) unit.params.push_back(rows("lm_head.weight", vocab_, s_.hidden, std_));
    return unit;
  }
};

}  // namespace

std::unique_ptr<UnitSpecs> llama_specs(const TransformerShape& shape, const deck::Model& model) {
  return std::make_unique<LlamaSpecs>(shape, model);
}

}  // namespace kzero::model
