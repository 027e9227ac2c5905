// The parts of a transformer's blocks are independent. A block of any combination of parts computes
// the gradients of its forward pass. The deck's families use two of the 32 combinations.
#include <gtest/gtest.h>

#include "base/error.hpp"
#include "model/families.hpp"
#include "model/transformer_definition.hpp"
#include "support/guarded.hpp"
#include "support/model_parts.hpp"
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

TransformerShape shape_of(const model::TransformerParts& parts) {
  TransformerShape shape(largest_model());
  static_cast<model::TransformerParts&>(shape) = parts;
  shape.qkv_bias = parts.biases;
  return shape;
}

/// The parameters that a block declares.
param::UnitSpec declared(const TransformerShape& shape) {
  model::Declaration block(shape, largest_model(), Index{0});
  static_cast<void>(model::Block<float>(block, largest_model()));
  return std::move(block.own).take();
}

struct Parts : ModelParts<float> {
  Parts(memory::Arenas& arenas, tensor::Gemm* gemm, const model::TransformerParts& parts)
      : ModelParts(arenas, gemm, largest_model(), {parts_batch, 1}, shape_of(parts)) {
    model::Activations memory(arenas);
    block().keep(memory, {parts_batch, 1}, deck::RecomputeMode::none);
  }
  model::Block<float>& block() { return *blocks.front(); }
};

/// A group of parameters in the block's unit.
struct Group {
  std::string name;
  tensor::Vector<float> values;
};

std::vector<Group> groups_of(const param::UnitSpec& block, float* unit) {
  std::vector<Group> groups;
  for (const param::ParamSpec& p : block.params) {
    groups.push_back({p.name, {unit, static_cast<std::size_t>(p.held())}});
    unit += p.held();
  }
  return groups;
}

/// A block with the loss sum(weights * out), and the gradient of its parameters and input.
class Block {
 public:
  explicit Block(const model::TransformerParts& parts)
      : gemm_(tensor::make_gemm(deck::GemmBackend::automatic)),
        arenas_(measured(parts), ledger_),
        parts_(arenas_, gemm_.get(), parts),
        spec(declared(parts_.shape)),
        unit(numbers<float>(spec.elements(), 1, 0.5)),
        gradient(spec.elements()),
        x(numbers<float>(parts_rows * shape().hidden, 2)),
        dx_(parts_rows * shape().hidden),
        out_(parts_rows * shape().hidden),
        weights_(numbers<float>(parts_rows * shape().hidden, 3)) {}

  const TransformerShape& shape() const { return parts_.shape; }

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
    const model::BlockUnits<float> units[] = {{gradient.data()}};
    parts_.block().backward(pass(), input(), units, accumulate,
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

  model::BlockPass<float> pass() const { return {parts_.context, {unit.data()}}; }
  tensor::Matrix<const float> input() const { return x.matrix(parts_rows, shape().hidden); }

  void forward() {
    parts_.block().forward(pass(), input(), out_.matrix(parts_rows, shape().hidden));
    Kokkos::fence("kzero::tests::block_done");
  }

  std::unique_ptr<tensor::Gemm> gemm_;
  memory::Ledger ledger_;
  memory::Arenas arenas_;
  Parts parts_;

 public:
  param::UnitSpec spec;
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

TEST(TransformerParts, OfAnyCombinationHaveTheGradientsOfTheirForwardPass) {
  for (const model::TransformerParts& parts : combinations()) {
    Block block(parts);
    const std::vector<float> dx = block.backward(tensor::Accumulate::no);
    const auto groups = groups_of(block.spec, block.unit.data());
    const auto gradients = groups_of(block.spec, block.gradient.data());
    // Of two norms, and of q, k, v, o, gate, up and down.
    const std::size_t layers = parts.activation == ActivationKind::swiglu ? 7 : 6;
    const std::size_t norms = parts.norm == NormKind::layer_norm ? 4 : 2;
    EXPECT_EQ(groups.size(), norms + layers * (parts.biases ? 2 : 1)) << describe(parts);
    std::vector<std::vector<float>> once;
    for (const Group& group : gradients) once.push_back(from_device(group.values));
    block.backward(tensor::Accumulate::yes);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::string what = describe(parts) + groups[i].name;
      expect_gradient(block, groups[i].values, once[i], what);
      std::vector<float> twice = from_device(gradients[i].values);
      for (float& value : twice) value /= 2;
      expect_gradient(block, groups[i].values, twice, what + ", of two micro-batches");
    }
    expect_gradient(block, block.x.vector(), dx, describe(parts) + "input");
  }
}

TEST(TransformerFamilies, AreListedOnce) {
  for (const model::TransformerFamily& family : model::transformer_families)
    EXPECT_EQ(&model::family_of(family.family), &family) << name_of(family.family);
  EXPECT_THROW(model::family_of(static_cast<deck::ModelFamily>(99)), Error);
}

TEST(TransformerFamilies, HaveThePartsOfPublishedModels) {
  const TransformerShape gpt2(deck::Model{}), llama(largest_model());
  EXPECT_EQ(describe(gpt2), "LayerNorm, learned, GELU, biases, [in, out]: ");
  EXPECT_EQ(describe(llama), "RMSNorm, rotary, SwiGLU, no biases, [out, in]: ");
}

}  // namespace
}  // namespace kzero::tests
