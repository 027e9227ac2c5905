#include "model/gpt_spec.hpp"

#include <cmath>

namespace kzero::model {

namespace {

using param::Init;
using param::ParamSpec;

/// A part of one extent of a parameter.
struct Extent {
  Index total = 0;
  Index begin = 0;
  Index length = 0;
};

/// Builds the local parameters of units for one tensor rank.
class UnitSpecs {
 public:
  UnitSpecs(const GptShape& shape, double std) : s_(shape), std_(std) {
    const Index before = shape.own.width * shape.tensor.rank;
    width_ = {shape.hidden, before, shape.own.width};
    const Index first = part_begin(shape.feed_forward, shape.tensor.size, shape.tensor.rank);
    feed_forward_ = {shape.feed_forward, first, shape.own.feed_forward};
    vocab_ = {shape.vocab, shape.own.first_token, shape.own.vocab};
  }

  param::UnitSpec embedding() const {
    return {"embedding",
            {rows("wte.weight", vocab_, std_), matrix("wpe.weight", s_.sequence, s_.hidden, std_)}};
  }

  param::UnitSpec block(Index i) const {
    const std::string at = "h." + std::to_string(i) + ".";
    const double residual = std_ / std::sqrt(2.0 * static_cast<double>(s_.layers));
    return {
        "block " + std::to_string(i),
        {vector(at + "ln_1.weight", Init::ones), vector(at + "ln_1.bias"),
         columns(at + "attn.c_attn.weight", 3, width_), part(at + "attn.c_attn.bias", 3, width_),
         rows(at + "attn.c_proj.weight", width_, residual), vector(at + "attn.c_proj.bias"),
         vector(at + "ln_2.weight", Init::ones), vector(at + "ln_2.bias"),
         columns(at + "mlp.c_fc.weight", 1, feed_forward_),
         part(at + "mlp.c_fc.bias", 1, feed_forward_),
         rows(at + "mlp.c_proj.weight", feed_forward_, residual), vector(at + "mlp.c_proj.bias")}};
  }

  param::UnitSpec head() const {
    param::UnitSpec unit{"head", {vector("ln_f.weight", Init::ones), vector("ln_f.bias")}};
    if (!s_.tied_embeddings) unit.params.push_back(rows("lm_head.weight", vocab_, std_));
    return unit;
  }

 private:
  static ParamSpec matrix(std::string name, Index rows, Index columns, double std) {
    return {std::move(name), {rows, columns}, Init::normal, std, true};
  }

  ParamSpec vector(std::string name, Init init = Init::zeros) const {
    return {std::move(name), {s_.hidden}, init};
  }

  /// [extent, D], split by rows.
  ParamSpec rows(std::string name, const Extent& e, double std) const {
    ParamSpec p = matrix(std::move(name), e.total, s_.hidden, std);
    p.split = {1, e.total * s_.hidden, e.begin * s_.hidden, e.length * s_.hidden};
    return p;
  }

  /// [D, groups * extent]: the columns of every group are split alike.
  ParamSpec columns(std::string name, Index groups, const Extent& e) const {
    ParamSpec p = matrix(std::move(name), s_.hidden, groups * e.total, std_);
    p.split = {s_.hidden * groups, e.total, e.begin, e.length};
    return p;
  }

  /// [groups * extent]: the bias of columns.
  static ParamSpec part(std::string name, Index groups, const Extent& e) {
    return {std::move(name), {groups * e.total},
            Init::zeros,     0,
            false,           {groups, e.total, e.begin, e.length}};
  }

  const GptShape& s_;
  double std_;
  Extent width_, feed_forward_, vocab_;
};

}  // namespace

GptShape::GptShape(const deck::Model& m, const TensorRank& t)
    : layers(m.layers),
      hidden(m.hidden),
      heads(m.heads),
      sequence(m.sequence),
      vocab(m.vocab),
      feed_forward(m.feed_forward > 0 ? m.feed_forward : 4 * m.hidden),
      tied_embeddings(m.tied_embeddings),
      sequence_parallel(m.sequence_parallel),
      layernorm_eps(static_cast<float>(m.layernorm_eps)),
      tensor(t) {
  own.heads = heads / t.size;
  own.width = hidden / t.size;
  own.feed_forward = part_size(feed_forward, t.size, t.rank);
  own.vocab = part_size(vocab, t.size, t.rank);
  own.first_token = part_begin(vocab, t.size, t.rank);
}

param::Table gpt_table(const deck::Model& model, const TensorRank& tensor) {
  const GptShape shape(model, tensor);
  const UnitSpecs units(shape, model.init_std);
  param::Table table{units.embedding()};
  for (Index i = 0; i < shape.layers; ++i) table.push_back(units.block(i));
  table.push_back(units.head());
  return table;
}

double gpt_flops_per_token(const deck::Model& model) {
  const GptShape s(model);
  const auto d = static_cast<double>(s.hidden);
  const double block = d * 3 * d + d * d + 2 * d * static_cast<double>(s.feed_forward);
  const double products = static_cast<double>(s.layers) * block + d * static_cast<double>(s.vocab);
  return 6 * products + 6 * static_cast<double>(s.layers * s.sequence) * d;
}

// The last block is not recomputed; no block recomputes its final GEMM.
Recomputed gpt_recomputed_per_token(const deck::Model& model, const deck::Recompute& recompute) {
  const GptShape s(model);
  const auto d = static_cast<double>(s.hidden), f = static_cast<double>(s.feed_forward);
  const auto again = static_cast<double>(s.layers - 1);
  Recomputed sum;
  if (recompute.mode == deck::RecomputeMode::full)
    sum.operations = again * 2 * (4 * d * d + d * f + static_cast<double>(s.sequence) * d);
  if (recompute.mode == deck::RecomputeMode::layernorm_gelu) sum.elements = again * (4 * d + 2 * f);
  if (recompute.offload == deck::Offload::host)
    sum.elements += static_cast<double>(s.layers) * 4 * d;
  return sum;
}

}  // namespace kzero::model
