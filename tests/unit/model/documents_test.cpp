// Documents that share a sequence are computed as if each were alone, and rows without a target
// have neither a loss nor a gradient.
#include <gtest/gtest.h>

#include "driven_model.hpp"
#include "packed_samples.hpp"
#include "reference/reference_case.hpp"

namespace kzero::tests::packed {
namespace {

constexpr Index sequence = 150, vocab = 101, layers = 2;

deck::Model gpt2() {
  deck::Model model;
  model.layers = layers, model.hidden = 15, model.heads = 3, model.sequence = sequence;
  model.vocab = vocab, model.feed_forward = 31;
  return model;
}

deck::Model llama() {
  deck::Model model = gpt2();
  model.family = deck::ModelFamily::llama;
  model.kv_heads = 1, model.head_dim = 6, model.tied_embeddings = false;
  return model;
}

deck::Model qwen3() {
  deck::Model model = llama();
  model.qk_norm = true;
  return model;
}

/// A window in the first layer, shorter than some documents.
deck::Model windows() {
  deck::Model model = llama();
  model.window = 37, model.full_attention_every = 2;
  return model;
}

deck::Model experts() {
  deck::Model model = llama();
  model.experts = 5, model.experts_per_token = 2;
  return model;
}

const std::vector<deck::Model> models{gpt2(), llama(), qwen3(), windows(), experts()};

/// Three rows: documents within a tile of attention and across tiles, of one token, of the row's
/// length, with padding after them, and one without targets.
std::vector<PlacedDocument> placed_documents() {
  struct Place {
    Index row, offset, length;
  };
  std::vector<PlacedDocument> documents;
  for (const auto& [row, offset, length] : {Place{0, 0, 70},
                                            {0, 70, 1},
                                            {0, 71, 66},
                                            {1, 0, sequence},
                                            {2, 0, 5},
                                            {2, 5, 40},
                                            {2, 45, 3},
                                            {2, 48, 100}}) {
    PlacedDocument document{{}, {}, row, offset};
    const std::uint64_t seed = 20 + documents.size();
    for (const double x : numbers<float>(length, seed))
      document.tokens.push_back(static_cast<Token>(std::abs(x) * vocab));
    for (Index i = 0; i < length; ++i)
      document.flags.push_back(i > 0 && i % 3 != 0 && length != 40 ? 1 : 0);
    documents.push_back(document);
  }
  return documents;
}

/// Rows of documents, and a model that is told of them.
template <class T>
struct Packed {
  PackedSamples samples;
  Guarded<std::int32_t> begin, end;
  DrivenModel<T> model;

  Packed(const deck::Model& shape, const std::vector<PlacedDocument>& documents, Index rows,
         Index batch, const deck::Recompute& recompute = {},
         model::Passes passes = model::Passes::all)
      : samples(rows, shape.sequence, documents),
        begin(samples.begin()),
        end(samples.end()),
        model(shape, batch, recompute, passes, true) {
    model.documents = {begin.vector(), end.vector()};
  }
};

template <class T>
void fill(DrivenModel<T>& model) {
  model.set_numbers();
  model.spoil_gradients();
}

template <class T>
std::vector<std::vector<double>> gradients(const DrivenModel<T>& model) {
  std::vector<std::vector<double>> all;
  for (const auto& unit : model.table) {
    for (const auto& p : unit.params) all.push_back(model.gradient(p.name));
  }
  return all;
}

/// As in reference_gradient_test.cpp, for two results with rounding errors of their own.
template <class T>
double tolerance() {
  if constexpr (dtype_of<T> == Dtype::fp32) return 2e-5;
  const auto l = static_cast<double>(layers);
  return 4 * std::sqrt((3 * (8 * l + 2) + 2 * (4 * l + 2)) / 3) * round_off<T>;
}

template <class T>
class Documents : public testing::Test {};
using Precisions = testing::Types<float, bf16>;
TYPED_TEST_SUITE(Documents, Precisions, );

// A document is alone at the beginning of a row without documents: nothing comes before it, and it
// does not see what comes after it.
TYPED_TEST(Documents, AreComputedAsIfEachWereAlone) {
  using T = TypeParam;
  const auto documents = placed_documents();
  for (const deck::Model& shape : models) {
    Packed<T> packed(shape, documents, 3, 3);
    DrivenModel<T> alone(shape, 1);
    fill(packed.model);
    fill(alone);
    const float scale = 1.0F / static_cast<float>(packed.samples.target_count());
    const std::vector<float> losses = packed.model.token_losses(packed.samples, 0);
    const double sum =
        packed.model.loss_and_gradients(packed.samples, 0, scale, tensor::Accumulate::no);
    double sum_alone = 0;
    auto accumulate = tensor::Accumulate::no;
    for (const PlacedDocument& document : documents) {
      PlacedDocument first = document;
      first.row = first.offset = 0;
      const PackedSamples samples(1, sequence, {first}, 7);
      const std::vector<float> expected = alone.token_losses(samples, 0);
      for (std::size_t i = 0; i < document.tokens.size(); ++i) {
        const float found = losses[document.row * sequence + document.offset + i];
        EXPECT_NEAR(found, expected[i], tolerance<T>() * as_double(expected[i])) << i;
      }
      sum_alone += alone.loss_and_gradients(samples, 0, scale, accumulate);
      accumulate = tensor::Accumulate::yes;
    }
    EXPECT_NEAR(sum, sum_alone, tolerance<T>() * sum_alone);
    for (const auto& unit : alone.table) {
      for (const auto& p : unit.params) {
        const auto expected = alone.gradient(p.name);
        if (std::ranges::all_of(expected, [](double g) { return g == 0; })) continue;
        EXPECT_LE(relative_distance(packed.model.gradient(p.name), expected), tolerance<T>())
            << p.name;
      }
    }
  }
}

/// Whether a gradient's sums have all rows of a batch in one order. An expert's sum has those that
/// choose it: rows of another document between them are zeros, but move others from one pair of
/// rows, which 16-bit products add first, to another. A device adds the rows of a token in runs, so
/// there the same is true of embeddings.
template <class T>
bool has_fixed_rows(const std::string& name) {
  const auto is_of = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (!tensor::on_host && (is_of("wte.") || is_of("embed_tokens."))) return false;
  return dtype_of<T> == Dtype::fp32 || !is_of(".experts.");
}

template <class T>
std::vector<std::vector<double>> gradients_of_fixed_rows(const DrivenModel<T>& model) {
  std::vector<std::vector<double>> all;
  for (const auto& unit : model.table) {
    for (const auto& p : unit.params)
      if (has_fixed_rows<T>(p.name)) all.push_back(model.gradient(p.name));
  }
  return all;
}

// Losses and gradients of all other documents, bit for bit.
TYPED_TEST(Documents, DoNotChangeWithTokensOfAnother) {
  using T = TypeParam;
  for (const std::size_t changed : {0, 5}) {  // before and between others; 5 has no targets
    auto documents = placed_documents(), others = documents;
    std::ranges::fill(documents[changed].flags, 0);
    others = documents;
    for (const std::size_t i : {0, 20, 39}) {
      Token& token = others[changed].tokens[i];
      token = (token + 50) % vocab;
    }
    for (const deck::Model& shape : models) {
      Packed<T> before(shape, documents, 3, 3), after(shape, others, 3, 3);
      fill(before.model);
      fill(after.model);
      for (Packed<T>* packed : {&before, &after})
        packed->model.loss_and_gradients(packed->samples, 0, 0.01F, tensor::Accumulate::no);
      EXPECT_TRUE(gradients_of_fixed_rows(before.model) == gradients_of_fixed_rows(after.model))
          << changed;
      // Its own losses do change once it has targets.
      std::ranges::fill(documents[changed].flags, 1);
      std::ranges::fill(others[changed].flags, 1);
      const PackedSamples all(3, sequence, documents), of_others(3, sequence, others);
      const auto losses = before.model.token_losses(all, 0),
                 new_losses = after.model.token_losses(of_others, 0);
      const PlacedDocument& own = documents[changed];
      const Index begin = own.row * sequence + own.offset;
      const Index end = begin + static_cast<Index>(own.tokens.size());
      for (Index i = 0; i < std::ssize(losses); ++i) {
        if (i >= begin && i < end) continue;
        EXPECT_EQ(losses[i], new_losses[i]) << i;
      }
      EXPECT_NE(losses[begin + 30], new_losses[begin + 30]);
      std::ranges::fill(documents[changed].flags, 0);
      std::ranges::fill(others[changed].flags, 0);
    }
  }
}

TYPED_TEST(Documents, HaveTheBitsOfForwardWhenRecomputedOrForwardOnly) {
  using T = TypeParam;
  const auto documents = placed_documents();
  for (const deck::Model& shape : models) {
    Packed<T> kept(shape, documents, 3, 3);
    fill(kept.model);
    const double sum =
        kept.model.loss_and_gradients(kept.samples, 0, 0.01F, tensor::Accumulate::no);
    for (const auto mode : {deck::RecomputeMode::layernorm_gelu, deck::RecomputeMode::full}) {
      Packed<T> recomputed(shape, documents, 3, 3, {.mode = mode});
      fill(recomputed.model);
      EXPECT_EQ(
          recomputed.model.loss_and_gradients(recomputed.samples, 0, 0.01F, tensor::Accumulate::no),
          sum);
      EXPECT_EQ(gradients(recomputed.model), gradients(kept.model));
    }
    Packed<T> forward(shape, documents, 3, 3, {}, model::Passes::forward);
    fill(forward.model);
    EXPECT_EQ(forward.model.loss(forward.samples, 0), sum);
    EXPECT_EQ(forward.model.token_losses(forward.samples, 0),
              kept.model.token_losses(kept.samples, 0));
  }
}

TYPED_TEST(Documents, OfOneSequenceAreThePlainModel) {
  using T = TypeParam;
  PlacedDocument document{{}, {}, 0, 0};
  for (const double x : numbers<float>(sequence, 5))
    document.tokens.push_back(static_cast<Token>(std::abs(x) * vocab));
  document.flags.assign(sequence, 1);
  for (const deck::Model& shape : models) {
    Packed<T> packed(shape, {document}, 1, 1);
    DrivenModel<T> plain(shape, 1);
    fill(packed.model);
    fill(plain);
    for (DrivenModel<T>* model : {&packed.model, &plain})
      model->loss_and_gradients(packed.samples, 0, 0.01F, tensor::Accumulate::no);
    EXPECT_EQ(gradients(packed.model), gradients(plain));
  }
}

TYPED_TEST(Documents, WithoutTargetsHaveNeitherLossNorGradient) {
  using T = TypeParam;
  auto documents = placed_documents();
  for (PlacedDocument& document : documents) std::ranges::fill(document.flags, 0);
  for (const deck::Model& shape : models) {
    Packed<T> packed(shape, documents, 3, 3);
    fill(packed.model);
    for (const float loss : packed.model.token_losses(packed.samples, 0)) EXPECT_EQ(loss, 0);
    EXPECT_EQ(packed.model.loss_and_gradients(packed.samples, 0, 1.0F, tensor::Accumulate::no), 0);
    for (const auto& of_parameter : gradients(packed.model)) {
      for (const double g : of_parameter) ASSERT_EQ(g, 0);
    }
  }
}

}  // namespace
}  // namespace kzero::tests::packed
