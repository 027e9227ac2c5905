// Recomputed activations have the bits that forward gave them. Their memory follows the formulas in
// this file.
#include <gtest/gtest.h>

#include "driven_model.hpp"
#include "model/residual_stream.hpp"
#include "random_samples.hpp"
#include "support/guarded.hpp"

namespace kzero::tests {
namespace {

using deck::Offload;
using deck::RecomputeMode;
using memory::Category;

const std::vector<deck::Recompute> variants{{.mode = RecomputeMode::layernorm_gelu},
                                            {.mode = RecomputeMode::full},
                                            {.mode = RecomputeMode::full, .offload = Offload::host},
                                            {.mode = RecomputeMode::feed_forward}};

std::string describe(const deck::Recompute& recompute, Index layers) {
  return std::string(name_of(recompute.mode)) +
         (recompute.offload == Offload::host ? ", host" : "") + ", " + std::to_string(layers) +
         " layers";
}

deck::Model odd_model(Index layers) {
  deck::Model model;
  model.layers = layers, model.hidden = 15, model.heads = 3, model.sequence = 13;
  model.vocab = 101, model.feed_forward = 31;
  return model;
}

template <class T>
class Recompute : public RandomSamples {
 protected:
  /// Losses, and the gradient of two micro-batches with a validation in between.
  std::vector<std::vector<double>> results(Index layers, const deck::Recompute& recompute) {
    DrivenModel<T> model(odd_model(layers), 2, recompute);
    std::uint64_t seed = 10;
    for (const auto& unit : model.table) {
      for (const auto& p : unit.params) {
        auto values = numbers<float>(p.elements(), ++seed, 0.5);
        if (p.init == param::Init::ones) {
          for (auto& value : values) value += 1;
        }
        model.set(p.name, values);
      }
    }
    model.spoil_gradients();
    std::vector<double> losses;
    using tensor::Accumulate;
    losses.push_back(model.loss_and_gradients(*sampler, 0, 0.25F, Accumulate::no));
    losses.push_back(model.loss(*sampler, 4));
    losses.push_back(model.loss_and_gradients(*sampler, 2, 0.25F, Accumulate::yes));
    std::vector<std::vector<double>> all{losses};
    for (const auto& unit : model.table) {
      for (const auto& p : unit.params) all.push_back(model.gradient(p.name));
    }
    return all;
  }
};

using Precisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(Recompute, Precisions);

TYPED_TEST(Recompute, ChangesNoBit) {
  for (const Index layers : {1, 2, 4}) {
    const auto expected = this->results(layers, {});
    for (const deck::Recompute& variant : variants) {
      const auto found = this->results(layers, variant);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t i = 0; i < found.size(); ++i)
        EXPECT_TRUE(same_bits(found[i], expected[i])) << describe(variant, layers) << ", " << i;
    }
  }
}

/// Bytes that a model uses for activations and for their replacements.
struct Taken {
  Index activations, recompute, offloaded;

  bool operator==(const Taken&) const = default;
};

template <class T>
Taken taken(const deck::Model& model, Index batch, const deck::Recompute& recompute,
            Index tile_rows = 0) {
  memory::Arenas arenas;
  const model::Transformer<T> counted(arenas, model, recompute,
                                      {{.batch = batch, .threads = 1, .tile_rows = tile_rows}});
  const auto of = [&](Category category) { return arenas.bytes()[position(category)]; };
  return {of(Category::activations), of(Category::recompute), of(Category::offloaded)};
}

// N = B T rows, and all sizes are multiples of the arenas' alignment. A block without recomputation
// keeps N (8 D + 2 F) elements, including N D of its input, and N (4 + H) fp32 numbers. With
// "layernorm_gelu" all blocks share one copy of N (2 D + F) of these elements and 4 N of these
// numbers. With "full" they share everything except the input, and with "feed_forward" N F elements
// more than with "layernorm_gelu". Of the elements that are shared, D + 2 F a row are those of one
// tile.
TYPED_TEST(Recompute, BytesDropByTheFormula) {
  deck::Model m;
  m.hidden = 48, m.heads = 3, m.sequence = 32, m.vocab = 101, m.feed_forward = 80;
  const Index batch = 2, n = batch * m.sequence, d = m.hidden, f = m.feed_forward;
  const Index width = bytes_of(dtype_of<TypeParam>);
  const Index layernorm_gelu = n * ((2 * d + f) * width + 4 * 4);
  const Index block = n * ((7 * d + 2 * f) * width + (4 + m.heads) * 4);
  const Index input = n * d * width;
  for (const Index layers : {1, 2, 12}) {
    m.layers = layers;
    const Taken none = taken<TypeParam>(m, batch, {});
    const auto with = [&](std::size_t i) { return taken<TypeParam>(m, batch, variants[i]); };
    const Index head = input + n * 2 * 4;  // its LayerNorm
    EXPECT_EQ(none, (Taken{layers * (block + input) + input + head, 0, 0}));
    EXPECT_EQ(with(0), (Taken{none.activations - (layers - 1) * layernorm_gelu, 0, 0}));
    const Index left = none.activations - (layers - 1) * block - layers * input;
    EXPECT_EQ(with(1), (Taken{left, layers * input, 0}));
    EXPECT_EQ(with(2), (Taken{left + (model::offload_places - 1) * input, 0, layers * input}));
    const Index shared = none.activations - (layers - 1) * (layernorm_gelu + n * f * width);
    EXPECT_EQ(with(3), (Taken{shared, 0, 0}));
    for (const Index rows : {n / 2, n / 4}) {
      const Index less = (n - rows) * (d + 2 * f) * width;
      EXPECT_EQ(taken<TypeParam>(m, batch, variants[3], rows), (Taken{shared - less, 0, 0}));
      EXPECT_EQ(taken<TypeParam>(m, batch, variants[1], rows),
                (Taken{left - less, layers * input, 0}));
    }
  }
}

TEST(RecomputeTrace, OfABlockReadsItsInputAndNothingElseThatForwardLeft) {
  const deck::Model model = odd_model(3);
  const auto plain = model::TransformerDefinition(model, {}).training_trace();
  const auto again =
      model::TransformerDefinition(model, {.mode = RecomputeMode::full}).training_trace();
  EXPECT_EQ(plain.size(), again.size());
  const auto names = [](const std::vector<param::Value>& values) {
    std::string text;
    for (const auto& value : values) {
      if (value.kind == param::ValueKind::activation) text += value.name + " ";
    }
    return text;
  };
  for (std::size_t i = 0; i < plain.size(); ++i) {
    for (const auto kind : {param::ValueKind::parameters, param::ValueKind::gradient}) {
      EXPECT_EQ(param::units_of(again[i].reads, kind), param::units_of(plain[i].reads, kind));
      EXPECT_EQ(param::units_of(again[i].writes, kind), param::units_of(plain[i].writes, kind));
    }
  }
  EXPECT_EQ(names(again[1].writes), "x1 ");
  EXPECT_EQ(names(again[3].writes), "x3 saved2 ") << "the last block's is still there";
  EXPECT_EQ(names(again[5].reads), "x2 saved2 dx ");
  EXPECT_EQ(names(again[6].reads), "x1 dx ");
  EXPECT_EQ(names(again[7].reads), "x0 dx ");
  EXPECT_EQ(names(plain[7].reads), "x0 saved0 dx ");
}

}  // namespace
}  // namespace kzero::tests
