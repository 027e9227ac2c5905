// Checks every gradient and logit of step 0 of the reference cases.
#include <gtest/gtest.h>

#include <cmath>
#include <deque>

#include "data/dataset.hpp"
#include "driven_model.hpp"
#include "model/block.hpp"
#include "model/head.hpp"
#include "reference/reference_case.hpp"
#include "support/guarded.hpp"

namespace kzero::tests {
namespace {

constexpr const char* cases[] = {"even", "odd", "llama_even", "llama_scaled", "qwen2", "qwen3"};

/// Twice the root mean square of a gradient's relative error in 16 bits: sqrt(K / 3) u, with K from
/// tests/reference/run_test.cpp. Norms of many elements are close to it.
template <class T>
double tolerance(Index layers) {
  if constexpr (dtype_of<T> == Dtype::fp32) {
    return 1e-5;
  } else {
    const auto l = static_cast<double>(layers);
    return 2 * std::sqrt((3 * (8 * l + 2) + 2 * (4 * l + 2)) / 3) * round_off<T>;
  }
}

template <class T>
class ReferenceGradient : public testing::Test {};
using Elements = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(ReferenceGradient, Elements);

TYPED_TEST(ReferenceGradient, OfEveryParameterAgreesWithFloat64) {
  using T = TypeParam;
  for (const char* name : cases) {
    const ReferenceCase reference(name);
    const deck::Config config = reference.config();
    const Index batch = config.train.global_batch;
    const auto dataset =
        data::open_dataset(config.data, config.model.sequence, config.model.vocab, 0);
    // Micro-batches of every size, each on a model with old gradients in memory.
    for (const Index micro : {batch, batch / 2, Index{1}}) {
      DrivenModel<T> model(config.model, micro);
      for (const auto& unit : model.table) {
        for (const auto& p : unit.params) model.set(p.name, reference.numbers("initial/" + p.name));
      }
      model.spoil_gradients();
      const double tokens = static_cast<double>(batch * config.model.sequence);
      // A power of two that raises fp16 gradients above the subnormal range.
      const double loss_scale = dtype_of<T> == Dtype::fp16 ? 1024 : 1;
      double loss = 0;
      for (Index first = 0; first < batch; first += micro) {
        loss += model.loss_and_gradients(
            *dataset.training, first, static_cast<float>(loss_scale / tokens),
            first == 0 ? tensor::Accumulate::no : tensor::Accumulate::yes);
      }
      const double expected_loss = reference.numbers("loss")[0];
      EXPECT_NEAR(loss / tokens, expected_loss, tolerance<T>(config.model.layers) * expected_loss);
      for (const auto& unit : model.table) {
        for (const auto& p : unit.params) {
          std::vector<double> actual = model.gradient(p.name);
          for (double& value : actual) value /= loss_scale;
          const auto expected = reference.numbers("gradient/" + p.name);
          EXPECT_LE(relative_distance(actual, expected), tolerance<T>(config.model.layers))
              << name << ", micro-batch " << micro << ": " << p.name;
        }
      }
      // A key's bias shifts all scores of a query equally. Its gradient is 1e-19 in float64 and
      // exactly zero here. This does not hold with rotary positions.
      if (model::TransformerShape(config.model).positions != model::PositionKind::learned) continue;
      for (Index i = 0; i < config.model.layers; ++i) {
        const auto bias = model.gradient("h." + std::to_string(i) + ".attn.c_attn.bias");
        for (Index d = config.model.hidden; d < 2 * config.model.hidden; ++d)
          EXPECT_EQ(bias[d], 0.0) << "block " << i;
      }
    }
  }
}

/// The forward pass built from the model's own parts, which exposes the head's logits. Those of the
/// last chunk remain available.
struct Forward {
  ModelParts<float> parts;
  model::Context<float>& context = parts.context;
  model::HeadSaved<float> head;
  tensor::Matrix<float> x, y;
  engine::Batches batches;

  Forward(memory::Arenas& a, tensor::Gemm* gemm, const deck::Model& model, Index batch)
      : parts(a, gemm, model, {batch, 1}),
        head(a, context.shape, batch),
        batches(a, {.batch = batch, .sequence = model.sequence, .vocab = model.vocab}) {
    const model::TransformerShape& s = context.shape;
    model::Activations activations(a);
    for (const auto& block : parts.blocks)
      block->keep(activations, {batch, 1}, deck::RecomputeMode::none);
    const Index rows = batch * s.sequence;
    for (auto* stream : {&x, &y}) {
      *stream = {a.take<float>(memory::Category::activations, rows * s.hidden),
                 static_cast<std::size_t>(rows), static_cast<std::size_t>(s.hidden)};
    }
  }
};

std::vector<float> flat_unit(const ReferenceCase& reference, const param::UnitSpec& unit) {
  std::vector<float> values;
  for (const auto& p : unit.params) {
    for (const double value : reference.numbers("initial/" + p.name))
      values.push_back(static_cast<float>(value));
  }
  return values;
}

TEST(ReferenceLogits, AndLossesOfEveryTokenAgreeWithFloat64) {
  for (const char* name : cases) {
    const ReferenceCase reference(name);
    const deck::Config config = reference.config();
    const model::TransformerShape s(config.model);
    const Index batch = config.train.global_batch, rows = batch * s.sequence;
    const auto gemm = tensor::make_gemm(deck::GemmBackend::automatic);
    memory::Ledger ledger;
    memory::Arenas measured;
    Forward(measured, nullptr, config.model, batch);
    memory::Arenas arenas(measured, ledger);
    Forward f(arenas, gemm.get(), config.model, batch);
    const auto dataset = data::open_dataset(config.data, s.sequence, s.vocab, 0);
    const model::Batch tokens = f.batches.load({}, *dataset.training, 0);

    const param::Table table = model::parameter_table(config.model);
    std::deque<Guarded<float>> units;
    for (const auto& unit : table) units.emplace_back(flat_unit(reference, unit));
    const auto embedding = units.front().data();
    const auto width = static_cast<std::size_t>(s.hidden);
    const auto rows_of = [&](const float* begin, Index count) {
      return tensor::Matrix<const float>(begin, static_cast<std::size_t>(count), width);
    };
    kernels::embedding_lookup<float>({}, tokens.inputs, rows_of(embedding, s.vocab), 0, f.x);
    if (s.positions == model::PositionKind::learned) {
      const auto positions = rows_of(embedding + s.vocab * s.hidden, s.sequence);
      kernels::add_positions<float>({}, positions, {0, s.sequence}, {}, f.x);
    }
    for (Index i = 0; i < s.layers; ++i) {
      f.parts.blocks[i]->forward({f.context, {units[i + 1].data()}}, f.x, f.y);
      std::swap(f.x, f.y);
    }
    const float* own = units.back().data();
    const float* output = s.tied_embeddings ? embedding : own + s.norm_elements();
    const model::HeadParams<const float> head{model::norm_at(s, own), rows_of(output, s.vocab)};
    model::head_forward<float>(f.context, head, f.x, tokens.targets, f.head);

    const auto logits = reference.numbers("logits");
    const model::LogitsChunk& chunk = f.context.chunk;
    const Index last = rows - (rows - 1) / chunk.slice * chunk.slice;
    ASSERT_LT(last, rows) << "logits never exist for the whole batch";
    const std::vector<double> tail(logits.end() - last * s.vocab, logits.end());
    std::vector<float> found_tail;
    for (Index row = 0; row < last; ++row) {
      const auto found_row = from_device(f.context.logits + row * chunk.stride, s.vocab);
      found_tail.insert(found_tail.end(), found_row.begin(), found_row.end());
    }
    EXPECT_LE(relative_distance(found_tail, tail), 1e-5) << name;
    const auto targets = from_device(tokens.targets);
    std::vector<double> losses;
    for (Index row = 0; row < rows; ++row) {
      double total = 0;
      for (Index v = 0; v < s.vocab; ++v) total += std::exp(logits[row * s.vocab + v]);
      losses.push_back(std::log(total) - logits[row * s.vocab + targets[row]]);
    }
    const auto found = from_device(f.context.losses);
    for (Index row = 0; row < rows; ++row)
      EXPECT_NEAR(found[row], losses[row], 1e-5 * losses[row]) << name << ' ' << row;
  }
}

}  // namespace
}  // namespace kzero::tests
