// A decoder's logits equal those of the training model for every family. They do not depend on
// where a row is computed.
#include "model/decoder.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "deck/model_rules.hpp"
#include "driven_model.hpp"
#include "support/same_bits.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {
namespace {

constexpr Index text_batch = 3, text_length = 13, text_vocab = 61;

deck::Model gpt2() {
  deck::Model m;
  m.layers = 2, m.hidden = 30, m.heads = 3, m.sequence = text_length, m.vocab = text_vocab;
  m.feed_forward = 53;
  return m;
}

deck::Model llama() {
  deck::Model m = gpt2();
  m.family = deck::ModelFamily::llama;
  m.hidden = 26, m.heads = 6, m.kv_heads = 2, m.head_dim = 8, m.feed_forward = 37;
  m.tied_embeddings = false;
  return m;
}

deck::Model qwen2() {
  deck::Model m = llama();
  m.qkv_bias = true, m.tied_embeddings = true;
  return m;
}

deck::Model qwen3() {
  deck::Model m = llama();
  m.qk_norm = true;
  m.rope_scaling = deck::RopeScaling::yarn;
  m.rope_factor = 4, m.rope_original_sequence = 8;
  return m;
}

deck::Model windows() {
  deck::Model m = llama();
  m.layers = 3, m.window = 4, m.full_attention_every = 3;
  return m;
}

deck::Model olmo2() {
  deck::Model m = llama();
  m.family = deck::ModelFamily::olmo2;
  return m;
}

deck::Model gemma3() {
  deck::Model m = windows();
  m.family = deck::ModelFamily::gemma3;
  m.window_rope_theta = 100, m.attention_scale = 0.2;
  m.tied_embeddings = true;
  return m;
}

deck::Model apertus() {
  deck::Model m = llama();
  m.family = deck::ModelFamily::apertus;
  return m;
}

/// More rows of a pass choose an expert in reading than in steps.
deck::Model experts() {
  deck::Model m = llama();
  m.experts = 5, m.experts_per_token = 2;
  return m;
}

deck::Model olmoe() {
  deck::Model m = experts();
  m.family = deck::ModelFamily::olmoe;
  m.normalized_gates = false;
  return m;
}

deck::Model balanced() {
  deck::Model m = experts();
  m.router_score = deck::RouterScore::sigmoid, m.router_bias = true;
  m.shared_feed_forward = 24;
  return m;
}

deck::Model shared() {
  deck::Model m = experts();
  m.shared_feed_forward = 40, m.shared_gate = true;
  return m;
}

deck::Model without_rope() {
  deck::Model m = llama();
  m.no_rope_every = 2, m.embedding_scale = 3, m.residual_scale = 0.5, m.logit_divisor = 2;
  return m;
}

deck::Model untied_gpt2() {
  deck::Model m = gpt2();
  m.tied_embeddings = false;
  return m;
}

struct Family {
  const char* name;
  deck::Model (*model)();
};

template <class T>
struct DecodedModel {
  DrivenModel<T> driven;
  std::unique_ptr<tensor::Gemm> gemm = tensor::make_gemm(deck::GemmBackend::automatic);
  memory::Ledger ledger;
  std::unique_ptr<model::Decoder> decoder;

  DecodedModel(const deck::Model& m, const model::DecoderShape& shape) : driven(m, text_batch) {
    std::uint64_t seed = 10;
    for (const auto& unit : driven.table) {
      for (const auto& p : unit.params) {
        std::vector<float> values = numbers<float>(p.elements(), ++seed, 0.5);
        if (p.init == param::Init::ones) {
          for (float& value : values) value += 1;
        }
        driven.set(p.name, values);
      }
    }
    const model::DecoderResources resources{shape, gemm.get()};
    decoder = model::make_decoder<T>(m, resources, driven.parameters(), ledger);
    EXPECT_EQ(ledger.peaks(), model::decoder_bytes(m, resources, dtype_of<T>));
  }

  std::vector<float> read(Index at, Index first, std::span<const Token> tokens) {
    const auto found = decoder->read(at, first, tokens);
    return {found.begin(), found.end()};
  }
  std::vector<float> step(std::span<const model::PlacedToken> rows) {
    const auto found = decoder->step(rows);
    return {found.begin(), found.end()};
  }
};

/// Sequences of a byte file, as read by training.
struct Sequences {
  TemporaryFolder folder;
  std::vector<Token> inputs = std::vector<Token>(text_batch * text_length), targets = inputs;
  std::unique_ptr<data::Sampler> sampler;

  Sequences() {
    const auto path = folder.path() / "tokens";
    std::string tokens;
    for (const double x : numbers<float>(text_batch * text_length + 1, 5))
      tokens += static_cast<char>(std::abs(x) * static_cast<double>(text_vocab));
    std::ofstream(path, std::ios::binary) << tokens;
    const auto stream = std::make_shared<data::TokenStream>(std::vector{path.string()},
                                                            deck::DataFormat::bytes, 256);
    sampler = std::make_unique<data::Sampler>(stream, text_length, 0, text_batch,
                                              deck::DataOrder::sequential, 0);
    sampler->batch(0, text_batch, inputs.data(), targets.data());
  }
  std::span<const Token> of(Index b, Index begin, Index count) const {
    return std::span(inputs).subspan(b * text_length + begin, count);
  }
};

double loss_of(const float* logits, Token target) {
  double largest = -1e300, total = 0;
  for (Index v = 0; v < text_vocab; ++v)
    largest = std::max(largest, static_cast<double>(logits[v]));
  for (Index v = 0; v < text_vocab; ++v) total += std::exp(logits[v] - largest);
  return largest + std::log(total) - logits[target];
}

class DecoderOf : public testing::TestWithParam<Family> {};

/// Both methods round each of a block's ten activations. They differ by one rounding of each, in
/// logits that are sums of `hidden` terms of about one.
template <class T>
double logit_bound(const deck::Model& m) {
  return 10 * static_cast<double>(m.layers + 1) * round_off<T> *
         std::sqrt(static_cast<double>(m.hidden)) * 4;
}

template <class T>
void check_losses(const deck::Model& m, const Sequences& text) {
  DecodedModel<T> d(m, {text_batch, text_length, 5});
  double sum = 0;
  for (Index b = 0; b < text_batch; ++b)
    sum += loss_of(d.read(b, 0, text.of(b, 0, 1)).data(), text.targets[b * text_length]);
  for (Index t = 1; t < text_length; ++t) {
    std::vector<model::PlacedToken> rows;
    for (Index b = 0; b < text_batch; ++b) rows.push_back({text.inputs[b * text_length + t], b, t});
    const auto logits = d.step(rows);
    for (Index b = 0; b < text_batch; ++b)
      sum += loss_of(logits.data() + b * text_vocab, text.targets[b * text_length + t]);
  }
  EXPECT_NEAR(sum, d.driven.loss(*text.sampler, 0), logit_bound<T>(m) * text_batch * text_length)
      << name_of(dtype_of<T>);
}

TEST_P(DecoderOf, StepsHaveTheLossesOfTraining) {
  const Sequences text;
  check_losses<float>(GetParam().model(), text);
  check_losses<bf16>(GetParam().model(), text);
  check_losses<fp16>(GetParam().model(), text);
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected, double bound,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t v = 0; v < found.size(); ++v) ASSERT_NEAR(found[v], expected[v], bound) << what;
}

// Reads prompts of every length in passes of five rows, then one more token.
TEST_P(DecoderOf, StepsAfterAPromptAreAsIfItHadBeenReadWhole) {
  const Sequences text;
  const deck::Model m = GetParam().model();
  DecodedModel<float> d(m, {text_batch, text_length, 5});
  for (Index length = 1; length < text_length; ++length) {
    const auto whole = d.read(0, 0, text.of(1, 0, length + 1));
    d.read(2, 0, text.of(1, 0, length));
    const model::PlacedToken next{text.of(1, length, 1)[0], 2, length};
    expect_near(d.step({&next, 1}), whole, logit_bound<float>(m), std::to_string(length));
  }
}

// Neither the cache's other sequences nor the other rows of a pass change a row's bits.
template <class T>
void check_composition(const deck::Model& m, const Sequences& text) {
  DecodedModel<T> alone(m, {1, text_length, 5}), together(m, {text_batch, text_length, 5});
  const Index lengths[] = {4, 11, 7};
  std::vector<std::vector<float>> expected;
  for (Index b = 0; b < text_batch; ++b) {
    const auto prompt = text.of(b, 0, lengths[b]);
    EXPECT_TRUE(same_bits(alone.read(0, 0, prompt), together.read(b, 0, prompt)));
    const model::PlacedToken next{Token{7}, 0, lengths[b]};
    expected.push_back(alone.step({&next, 1}));
  }
  std::vector<model::PlacedToken> rows;
  for (const Index b : {2, 0, 1}) rows.push_back({Token{7}, b, lengths[b]});
  const auto found = together.step(rows);
  for (Index i = 0; i < text_batch; ++i) {
    const std::vector<float> row(found.begin() + i * text_vocab,
                                 found.begin() + (i + 1) * text_vocab);
    EXPECT_TRUE(same_bits(row, expected[rows[i].sequence])) << "row " << i;
  }
}

TEST_P(DecoderOf, OtherSequencesDoNotShow) {
  const Sequences text;
  check_composition<float>(GetParam().model(), text);
  check_composition<bf16>(GetParam().model(), text);
  check_composition<fp16>(GetParam().model(), text);
}

// A window of 40 and passes of 16 rows: a sequence has 64 places in two layers, and 256 in the
// third. With as many sequences as positions, a pass may have so many rows that no cache is
// shorter.
TEST(DecoderWithWindows, HasShorterCachesAndTheSameBits) {
  deck::Model m = windows();
  m.sequence = 256, m.window = 40;
  const model::DecoderShape shape{text_batch, m.sequence, 16};
  DecodedModel<bf16> ring(m, shape), whole(m, {m.sequence, m.sequence, 16});
  const auto bytes = model::decoder_bytes(m, {shape, nullptr}, Dtype::bf16);
  EXPECT_EQ(bytes[memory::position(memory::Category::activations)],
            2 * 2 * m.kv_heads * m.head_dim * text_batch * (2 * 64 + 256));
  std::vector<Token> text;
  for (const double x : numbers<float>(m.sequence, 5))
    text.push_back(static_cast<Token>(std::abs(x) * static_cast<double>(text_vocab)));
  const std::span<const Token> tokens(text);
  std::vector<Index> lengths{150, 9, 70};
  for (Index b = 0; b < text_batch; ++b) {
    const auto prompt = tokens.first(lengths[b]);
    ASSERT_TRUE(same_bits(ring.read(b, 0, prompt), whole.read(b, 0, prompt))) << lengths[b];
  }
  for (; lengths[0] < m.sequence; ++lengths[0], ++lengths[1], ++lengths[2]) {
    std::vector<model::PlacedToken> rows;
    for (Index b = 0; b < text_batch; ++b) rows.push_back({text[lengths[b]], b, lengths[b]});
    ASSERT_TRUE(same_bits(ring.step(rows), whole.step(rows))) << lengths[0];
  }
  // Another prompt takes the place of a sequence that has ended.
  ASSERT_TRUE(same_bits(ring.read(0, 0, tokens.last(90)), whole.read(0, 0, tokens.last(90))));
}

INSTANTIATE_TEST_SUITE_P(Families, DecoderOf,
                         testing::Values(Family{"olmo2", olmo2}, Family{"gemma3", gemma3},
                                         Family{"apertus", apertus},
                                         Family{"without_rope", without_rope}, Family{"gpt2", gpt2},
                                         Family{"untied_gpt2", untied_gpt2}, Family{"llama", llama},
                                         Family{"qwen2", qwen2}, Family{"qwen3", qwen3},
                                         Family{"windows", windows}, Family{"experts", experts},
                                         Family{"olmoe", olmoe}, Family{"balanced", balanced},
                                         Family{"shared", shared}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kzero::tests
