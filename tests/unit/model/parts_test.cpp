// The parts of a transformer's blocks are independent. A block of any combination of parts computes
// the gradients of its forward pass. The deck's families use two of the 32 combinations.
#include <gtest/gtest.h>

#include <optional>

#include "base/error.hpp"
#include "model/block.hpp"
#include "model/parameter_table.hpp"
#include "model/transformer_families.hpp"
#include "support/guarded.hpp"
#include "support/numbers.hpp"
#include "tensor/gemm.hpp"

namespace kzero::tests {
namespace {

using model::ActivationKind;
using model::NormKind;
using model::PositionKind;
using model::TransformerShape;
using model::WeightLayout;

constexpr Index parts_batch = 2, parts_sequence = 5, parts_rows = parts_batch * parts_sequence;

/// Sized for the largest combination: an activation of 2 F = 10 columns is narrower than the 16
/// columns of queries, keys and values.
deck::Model largest_model() {
  deck::Model m;
  m.family = deck::ModelFamily::llama;
  m.layers = 1, m.hidden = 8, m.heads = 2, m.kv_heads = 1, m.sequence = parts_sequence;
  m.feed_forward = 5, m.vocab = 11, m.qkv_bias = true;
  return m;
}

struct Parts {
  model::Context<float> context;
  std::optional<model::BlockActivations<float>> saved;

  Parts(memory::Arenas& arenas, tensor::Gemm* gemm, const model::TransformerParts& parts)
      : context(arenas, gemm, largest_model(), {parts_batch, 1}) {
    TransformerShape& s = context.shape;
    static_cast<model::TransformerParts&>(s) = parts;
    s.qkv_bias = parts.biases;
    saved.emplace(model::BlockActivations<float>{{arenas, context.shape, parts_batch},
                                                 {arenas, context.shape, parts_rows},
                                                 {arenas, s, parts_batch, 0}});
  }
};

/// A group of parameters in the block's unit.
struct Group {
  const char* name;
  tensor::Vector<float> values;
};

std::vector<Group> groups_of(const TransformerShape& s, float* unit) {
  const model::BlockParams<float> p(s, unit);
  const auto flat = [](const tensor::Matrix<float>& m) {
    return tensor::Vector<float>(m.data(), m.size());
  };
  return {{"norm1.weight", p.norm1.weight},
          {"norm1.bias", p.norm1.bias},
          {"qkv.weight", flat(p.qkv.weight)},
          {"qkv.bias", p.qkv.bias},
          {"projection.weight", flat(p.projection.weight)},
          {"projection.bias", p.projection.bias},
          {"norm2.weight", p.norm2.weight},
          {"norm2.bias", p.norm2.bias},
          {"up.weight", flat(p.up.weight)},
          {"up.bias", p.up.bias},
          {"down.weight", flat(p.down.weight)},
          {"down.bias", p.down.bias}};
}

Index unit_elements(const TransformerShape& s) {
  std::vector<float> room(1024);  // a view of empty memory has no size
  Index sum = 0;
  for (const Group& group : groups_of(s, room.data()))
    sum += static_cast<Index>(group.values.size());
  return sum + (s.qk_norm ? 2 * s.head_dim : 0);
}

/// A block with the loss sum(weights * out), and the gradient of its parameters and input.
class Block {
 public:
  explicit Block(const model::TransformerParts& parts)
      : gemm_(tensor::make_gemm(deck::GemmBackend::automatic)),
        arenas_(measured(parts), ledger_),
        parts_(arenas_, gemm_.get(), parts),
        unit(numbers<float>(unit_elements(shape()), 1, 0.5)),
        gradient(unit_elements(shape())),
        x(numbers<float>(parts_rows * shape().hidden, 2)),
        dx_(parts_rows * shape().hidden),
        out_(parts_rows * shape().hidden),
        weights_(numbers<float>(parts_rows * shape().hidden, 3)) {}

  const TransformerShape& shape() const { return parts_.context.shape; }

  double loss() {
    forward();
    const std::vector<float> out = out_.host();
    double sum = 0;
    for (std::size_t i = 0; i < out.size(); ++i) sum += as_double(out[i]) * as_double(weights_[i]);
    return sum;
  }

  /// Overwrites the parameter gradients or adds to them. Returns the gradient of the input.
  std::vector<float> backward(tensor::Accumulate accumulate) {
    forward();
    dx_.set(weights_);
    float* const units[] = {gradient.data()};
    model::block_backward<float>(parts_.context, read_only(), {}, input(), *parts_.saved,
                                 accumulate, {shape(), units, 0},
                                 dx_.matrix(parts_rows, shape().hidden));
    Kokkos::fence("kzero::tests::gradients_ready");
    return dx_.host();
  }

 private:
  static memory::Arenas measured(const model::TransformerParts& parts) {
    memory::Arenas arenas;
    Parts(arenas, nullptr, parts);
    return arenas;
  }

  model::BlockParams<const float> read_only() const { return {shape(), unit.data()}; }
  tensor::Matrix<const float> input() const { return x.matrix(parts_rows, shape().hidden); }

  void forward() {
    model::block_forward<float>(parts_.context, read_only(), {}, input(), *parts_.saved,
                                out_.matrix(parts_rows, shape().hidden));
    Kokkos::fence("kzero::tests::block_done");
  }

  std::unique_ptr<tensor::Gemm> gemm_;
  memory::Ledger ledger_;
  memory::Arenas arenas_;
  Parts parts_;

 public:
  Guarded<float> unit, gradient, x;

 private:
  Guarded<float> dx_, out_;
  std::vector<float> weights_;
};

std::vector<model::TransformerParts> combinations() {
  std::vector<model::TransformerParts> all;
  for (const NormKind norm : {NormKind::layer_norm, NormKind::rms_norm}) {
    for (const PositionKind positions : {PositionKind::learned, PositionKind::rotary}) {
      for (const ActivationKind activation : {ActivationKind::gelu, ActivationKind::swiglu}) {
        for (const bool biases : {false, true}) {
          for (const WeightLayout layout : {WeightLayout::in_out, WeightLayout::out_in})
            all.push_back({norm, positions, activation, biases, layout});
        }
      }
    }
  }
  return all;
}

/// The derivative of the loss as `values` moves along `direction`, by fourth-order differences. The
/// loss has an error of about 1e-6 from rounding a hundred terms near 1. Dividing by the step of
/// 2^-5 increases this error to 1e-4. The difference formula has an error of 1e-6 times the fifth
/// derivative.
double difference(Block& block, const tensor::Vector<float>& values,
                  const std::vector<float>& direction) {
  constexpr float h = 0x1p-5F;
  const std::vector<float> at = from_device(values);
  const auto moved = [&](float by) {
    std::vector<float> to = at;
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += by * direction[i];
    to_device(to, values.data());
    return block.loss();
  };
  const double near = moved(h) - moved(-h), far = moved(2 * h) - moved(-2 * h);
  to_device(at, values.data());
  return (8 * near - far) / (12 * as_double(h));
}

void expect_gradient(Block& block, const tensor::Vector<float>& values,
                     const std::vector<float>& gradient, const std::string& what) {
  const auto direction = numbers<float>(static_cast<Index>(values.size()), 7);
  double along = 0, magnitude = 1;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    const double term = as_double(gradient[i]) * as_double(direction[i]);
    along += term, magnitude += std::abs(term);
  }
  EXPECT_NEAR(difference(block, values, direction), along, 1e-3 * magnitude) << what;
}

std::string describe(const model::TransformerParts& p) {
  return std::string(p.norm == NormKind::layer_norm ? "LayerNorm" : "RMSNorm") +
         (p.positions == PositionKind::learned ? ", learned" : ", rotary") +
         (p.activation == ActivationKind::gelu ? ", GELU" : ", SwiGLU") +
         (p.biases ? ", biases" : ", no biases") +
         (p.weight_layout == WeightLayout::in_out ? ", [in, out]: " : ", [out, in]: ");
}

bool has(const model::TransformerParts& parts, std::string_view group) {
  if (group.ends_with("weight")) return true;
  return group.starts_with("norm") ? parts.norm == NormKind::layer_norm : parts.biases;
}

TEST(TransformerParts, OfAnyCombinationHaveTheGradientsOfTheirForwardPass) {
  for (const model::TransformerParts& parts : combinations()) {
    Block block(parts);
    const std::vector<float> dx = block.backward(tensor::Accumulate::no);
    const auto groups = groups_of(block.shape(), block.unit.data());
    const auto gradients = groups_of(block.shape(), block.gradient.data());
    std::vector<std::vector<float>> once;
    for (const Group& group : gradients) once.push_back(from_device(group.values));
    block.backward(tensor::Accumulate::yes);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string what = describe(parts) + groups[i].name;
      EXPECT_EQ(groups[i].values.size() > 0, has(parts, groups[i].name)) << what;
      expect_gradient(block, groups[i].values, once[i], what);
      std::vector<float> twice = from_device(gradients[i].values);
      for (float& value : twice) value /= 2;
      expect_gradient(block, groups[i].values, twice, what + ", of two micro-batches");
    }
    expect_gradient(block, block.x.vector(), dx, describe(parts) + "input");
  }
}

TEST(TransformerFamilies, AreListedOnceWithATableOfWhatTheirPartsNeed) {
  for (const model::TransformerFamily& family : model::transformer_families) {
    const std::string_view name = name_of(family.family);
    EXPECT_EQ(&model::transformer_family(family.family), &family) << name;
    deck::Model m = largest_model();
    m.family = family.family;
    if (family.parts.positions == PositionKind::learned) m.kv_heads = 0;
    for (const bool has_bias : {false, true}) {
      m.qkv_bias = has_bias;
      const param::Table table = model::parameter_table(m);
      EXPECT_EQ(param::elements_of({table[1]}), unit_elements(TransformerShape(m))) << name;
    }
  }
  EXPECT_THROW(model::transformer_family(static_cast<deck::ModelFamily>(99)), Error);
}

TEST(TransformerFamilies, HaveThePartsOfPublishedModels) {
  const TransformerShape gpt2(deck::Model{}), llama(largest_model());
  EXPECT_EQ(describe(gpt2), "LayerNorm, learned, GELU, biases, [in, out]: ");
  EXPECT_EQ(describe(llama), "RMSNorm, rotary, SwiGLU, no biases, [out, in]: ");
}

}  // namespace
}  // namespace kzero::tests
