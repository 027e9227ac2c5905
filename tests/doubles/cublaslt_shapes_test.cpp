// Whether the GEMMs of published models meet cuBLAS' conditions for tensor cores at full speed.
#include <gtest/gtest.h>

#include "doubles/cublaslt.hpp"
#include "model/transformer.hpp"
#include "model/transformer_definition.hpp"
#include "param/flat_layout.hpp"
#include "support/head.hpp"
#include "tensor/gemm_backends.hpp"

namespace kzero::tensor {

namespace {

using tests::cublaslt;
using tests::Guarded;
using tests::head_rows;

/// The part that a test leaves out of a device's chunk of logits.
enum class Chunk { of_devices, without_columns, without_stride };

template <class T>
model::LogitsChunk chunk_of(const deck::Model& deck, Chunk kind) {
  const model::TransformerShape shape(deck);
  model::LogitsChunk chunk = model::logits_chunk(head_rows, shape, dtype_of<T>, true);
  if (kind != Chunk::of_devices) chunk.columns = shape.own.vocab;
  if (kind == Chunk::without_stride) chunk.stride = shape.own.vocab;
  return chunk;
}

template <class T>
class CublasLtShapes : public testing::Test {
 protected:
  ~CublasLtShapes() override {
    EXPECT_EQ(cublaslt().alive, 0) << "objects of the library left over";
  }
};
using AllTypes = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(CublasLtShapes, AllTypes, );

// With an odd vocabulary, contiguous rows make all three products of the head slow. Rows that begin
// at multiples of 16 bytes suffice in fp32. In 16 bits, the extents count, too.
TYPED_TEST(CublasLtShapes, OfAnOddVocabularyArePadded) {
  using T = TypeParam;
  const deck::Model deck = tests::small_model(53);
  const std::vector<T> before(53 * deck.hidden, T(0.5F));
  const auto run = [&](Chunk kind, std::size_t slow) {
    CublasLtGemm gemm;
    const tests::Head<T> head(gemm, deck, chunk_of<T>(deck, kind));
    cublaslt().slow.clear();
    const auto results = head.run(Accumulate::no, before);
    EXPECT_EQ(cublaslt().slow.size(), slow) << testing::PrintToString(cublaslt().slow);
    return results;
  };
  const auto expected = run(Chunk::of_devices, 0);
  const std::size_t without_columns = dtype_of<T> == Dtype::fp32 ? 0 : 3;
  for (const auto& found :
       {run(Chunk::without_columns, without_columns), run(Chunk::without_stride, 3)}) {
    EXPECT_TRUE(tests::same_bits(found.losses, expected.losses));
    EXPECT_TRUE(tests::same_bits(found.doutput, expected.doutput));
    EXPECT_TRUE(tests::same_bits(found.dx, expected.dx));
  }
}

/// One block of a GPT-2 model with sequences of head_rows.
deck::Model gpt2(Index hidden, Index heads) {
  deck::Model m;
  m.layers = 1, m.hidden = hidden, m.heads = heads;
  m.sequence = head_rows, m.vocab = 50257;
  return m;
}

deck::Model tinyllama() {
  deck::Model m;
  m.family = deck::ModelFamily::llama;
  m.layers = 1, m.hidden = 2048, m.heads = 32, m.kv_heads = 4, m.feed_forward = 5632;
  m.sequence = head_rows, m.vocab = 32000, m.tied_embeddings = false;
  return m;
}

/// Runs the model's block forward and backward. Its values have no meaning.
void run_block(Gemm& gemm, const deck::Model& deck) {
  const model::BatchShape batch{.batch = 1};
  memory::Arenas measured;
  static_cast<void>(model::Transformer<bf16>(measured, deck, {}, {batch}));
  memory::Ledger ledger;
  memory::Arenas arenas(measured, ledger);
  model::Transformer<bf16> transformer(arenas, deck, {}, {batch, &gemm});
  const param::FlatLayout layout(model::parameter_table(deck), 1);
  const Guarded<bf16> parameters(layout.unit(1).padded), gradients(layout.unit(1).padded);
  const std::vector<const bf16*> values{nullptr, parameters.data(), nullptr};
  const std::vector<bf16*> of_values{nullptr, gradients.data(), nullptr};
  transformer.forward(1, values, {});
  for (const auto accumulate : {Accumulate::no, Accumulate::yes})
    transformer.backward(1, values, {}, accumulate, of_values);
}

TEST(CublasLtModels, OfPublishedModelsLetItUseTensorCores) {
  const std::pair<const char*, deck::Model> models[] = {{"gpt2-124m", gpt2(768, 12)},
                                                        {"GPT-2 1.5B", gpt2(1600, 25)},
                                                        {"TinyLlama 1.1B", tinyllama()}};
  cublaslt().computes = false;
  for (const auto& [name, deck] : models) {
    CublasLtGemm gemm;
    cublaslt().slow.clear();
    const Index products = cublaslt().products;
    run_block(gemm, deck);
    const tests::Head<bf16> head(gemm, deck, chunk_of<bf16>(deck, Chunk::of_devices));
    static_cast<void>(head.run(Accumulate::no, std::vector<bf16>(deck.vocab * deck.hidden)));
    EXPECT_GT(cublaslt().products, products);
    EXPECT_EQ(cublaslt().slow, std::set<std::string>()) << name;
  }
  cublaslt().computes = true;
}

}  // namespace

}  // namespace kzero::tensor
