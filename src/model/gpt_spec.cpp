#include "model/gpt_spec.hpp"

#include <cmath>

namespace kzero::model {

namespace {

using param::Init;
using param::ParamSpec;

ParamSpec matrix(std::string name, Index rows, Index columns, double std) {
  return {std::move(name), {rows, columns}, Init::normal, std, true};
}

ParamSpec vector(std::string name, Index length, Init init) {
  return {std::move(name), {length}, init, 0, false};
}

param::UnitSpec block(const GptShape& s, Index i, double std) {
  const std::string at = "h." + std::to_string(i) + ".";
  const double residual_std = std / std::sqrt(2.0 * static_cast<double>(s.layers));
  return {"block " + std::to_string(i),
          {vector(at + "ln_1.weight", s.hidden, Init::ones),
           vector(at + "ln_1.bias", s.hidden, Init::zeros),
           matrix(at + "attn.c_attn.weight", s.hidden, 3 * s.hidden, std),
           vector(at + "attn.c_attn.bias", 3 * s.hidden, Init::zeros),
           matrix(at + "attn.c_proj.weight", s.hidden, s.hidden, residual_std),
           vector(at + "attn.c_proj.bias", s.hidden, Init::zeros),
           vector(at + "ln_2.weight", s.hidden, Init::ones),
           vector(at + "ln_2.bias", s.hidden, Init::zeros),
           matrix(at + "mlp.c_fc.weight", s.hidden, s.feed_forward, std),
           vector(at + "mlp.c_fc.bias", s.feed_forward, Init::zeros),
           matrix(at + "mlp.c_proj.weight", s.feed_forward, s.hidden, residual_std),
           vector(at + "mlp.c_proj.bias", s.hidden, Init::zeros)}};
}

}  // namespace

GptShape::GptShape(const deck::Model& m)
    : layers(m.layers),
      hidden(m.hidden),
      heads(m.heads),
      sequence(m.sequence),
      vocab(m.vocab),
      feed_forward(m.feed_forward > 0 ? m.feed_forward : 4 * m.hidden),
      tied_embeddings(m.tied_embeddings),
      layernorm_eps(static_cast<float>(m.layernorm_eps)) {}

param::Table gpt_table(const deck::Model& model) {
  const GptShape s(model);
  param::Table table;
  table.push_back({"embedding",
                   {matrix("wte.weight", s.vocab, s.hidden, model.init_std),
                    matrix("wpe.weight", s.sequence, s.hidden, model.init_std)}});
  for (Index i = 0; i < s.layers; ++i) table.push_back(block(s, i, model.init_std));
  param::UnitSpec head{
      "head",
      {vector("ln_f.weight", s.hidden, Init::ones), vector("ln_f.bias", s.hidden, Init::zeros)}};
  if (!s.tied_embeddings)
    head.params.push_back(matrix("lm_head.weight", s.vocab, s.hidden, model.init_std));
  table.push_back(std::move(head));
  return table;
}

double flops_per_token(const deck::Model& model) {
  const GptShape s(model);
  const auto d = static_cast<double>(s.hidden);
  const double block = d * 3 * d + d * d + 2 * d * static_cast<double>(s.feed_forward);
  const double products = static_cast<double>(s.layers) * block + d * static_cast<double>(s.vocab);
  return 6 * products + 6 * static_cast<double>(s.layers * s.sequence) * d;
}

// The last block is not computed again, and of none the last product.
Recomputed recomputed_per_token(const deck::Model& model, const deck::Recompute& recompute) {
  const GptShape s(model);
  const auto d = static_cast<double>(s.hidden), f = static_cast<double>(s.feed_forward);
  const auto again = static_cast<double>(s.layers - 1);
  Recomputed sum;
  if (recompute.mode == deck::RecomputeMode::block)
    sum.operations = again * 2 * (4 * d * d + d * f + static_cast<double>(s.sequence) * d);
  if (recompute.mode == deck::RecomputeMode::selective) sum.elements = again * (4 * d + 2 * f);
  if (recompute.offload == deck::Offload::host)
    sum.elements += static_cast<double>(s.layers) * 4 * d;
  return sum;
}

}  // namespace kzero::model
