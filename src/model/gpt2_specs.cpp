#include "model/transformer_families.hpp"

namespace kzero::model {

namespace {

using param::Init;

/// GPT-2: linear weights are [in, out]. q, k and v are one parameter.
class Gpt2Specs : public UnitSpecs {
 public:
  using UnitSpecs::UnitSpecs;

  param::UnitSpec embedding() const override {
    return {"embedding",
            {rows("wte.weight", vocab_, s_.hidden, std_),
             matrix("wpe.weight", s_.sequence, s_.hidden, std_)}};
  }

  param::UnitSpec block(Index i) const override {
    const std::string at = "h." + std::to_string(i) + ".";
    const Index d = s_.hidden;
    return {"block " + std::to_string(i),
            {vector(at + "ln_1.weight", d, Init::ones), vector(at + "ln_1.bias", d),
             hidden(columns(at + "attn.c_attn.weight", d, 3, width_, std_), 3),
             part(at + "attn.c_attn.bias", 3, width_),
             hidden(rows(at + "attn.c_proj.weight", width_, d, residual_std_)),
             vector(at + "attn.c_proj.bias", d), vector(at + "ln_2.weight", d, Init::ones),
             vector(at + "ln_2.bias", d),
             hidden(columns(at + "mlp.c_fc.weight", d, 1, feed_forward_, std_)),
             part(at + "mlp.c_fc.bias", 1, feed_forward_),
             hidden(rows(at + "mlp.c_proj.weight", feed_forward_, d, residual_std_)),
             vector(at + "mlp.c_proj.bias", d)}};
  }

  param::UnitSpec head() const override {
    param::UnitSpec unit{
        "head", {vector("ln_f.weight", s_.hidden, Init::ones), vector("ln_f.bias", s_.hidden)}};
    if (!s_.tied_embeddings) unit.params.push_back(rows("lm_head.weight", vocab_, s_.hidden, std_));
    return unit;
  }
};

}  // namespace

std::unique_ptr<UnitSpecs> gpt2_specs(const TransformerShape& shape, const deck::Model& model) {
  return std::make_unique<Gpt2Specs>(shape, model);
}

}  // namespace kzero::model
