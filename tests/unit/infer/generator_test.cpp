// Continuations do not depend on the cache, the batch or the tensor ranks. They depend on seeds.
// Also tests how they end.
#include "infer/generator.hpp"

#include <gtest/gtest.h>

#include "random_model.hpp"

namespace kzero::tests {
namespace {

using infer::CacheUse;
using infer::Continuation;
using infer::EndReason;

constexpr Index text_length = 29, text_vocab = 61;

deck::Model gpt2_model() {
  deck::Model m;
  m.layers = 2, m.hidden = 60, m.heads = 12;
  m.sequence = text_length, m.vocab = text_vocab, m.feed_forward = 53;
  return m;
}

/// Two KV heads, or a multiple of the ranks.
deck::Model llama_model() {
  deck::Model m = gpt2_model();
  m.family = deck::ModelFamily::llama;
  m.hidden = 35, m.head_dim = 6, m.feed_forward = 41;
  m.kv_heads = grid::world_group().size() == 3 ? 3 : 2;
  m.tied_embeddings = false;
  return m;
}

deck::Model qwen2_model() {
  deck::Model m = llama_model();
  m.qkv_bias = true, m.tied_embeddings = true;
  return m;
}

deck::Model qwen3_model() {
  deck::Model m = llama_model();
  m.qk_norm = true;
  return m;
}

struct NamedModel {
  const char* name;
  deck::Model (*model)();
};

/// Prompts of different lengths. One of them leaves space for only three tokens.
std::vector<infer::Prompt> some_prompts(Index max_tokens = 12) {
  std::vector<infer::Prompt> prompts;
  for (const Index length : {5, 1, 26, 11, 8}) {
    infer::Prompt prompt{{}, max_tokens, static_cast<Index>(prompts.size())};
    for (Index i = 0; i < length; ++i)
      prompt.tokens.push_back(static_cast<Token>((i * 17 + length * 5) % text_vocab));
    prompts.push_back(prompt);
  }
  return prompts;
}

/// Token t is the character with code ' ' + t.
std::string_view bytes_of_token(Token token) {
  static const std::string all = [] {
    std::string text;
    for (Index i = 0; i < text_vocab; ++i) text += static_cast<char>(' ' + i);
    return text;
  }();
  return std::string_view(all).substr(static_cast<std::size_t>(token), 1);
}

struct Options {
  Index batch = 3;
  infer::Sampling sampling{.temperature = 0};
  CacheUse cache = CacheUse::reuse;
  std::vector<std::string> stops{};
  std::vector<Token> end_tokens{};
};

template <class T = float>
std::vector<Continuation> continued(const deck::Model& m, const grid::Group& ranks,
                                    const Options& o,
                                    const std::vector<infer::Prompt>& prompts = some_prompts()) {
  RandomModel<T> model(m, ranks, {o.batch, text_length, 7});
  std::vector<Continuation> all(prompts.size());
  std::vector<std::string> streamed(prompts.size());
  infer::generate(*model, ranks, prompts,
                  {o.sampling, o.stops, o.end_tokens, o.cache, bytes_of_token},
                  {[&](std::size_t i, std::string_view text) { streamed[i] += text; },
                   [&](std::size_t i, const Continuation& c) { all[i] = c; }});
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_FALSE(all[i].tokens.empty());
    EXPECT_EQ(streamed[i], all[i].text);
  }
  return all;
}

std::vector<std::vector<Token>> tokens_of(const std::vector<Continuation>& all) {
  std::vector<std::vector<Token>> tokens;
  for (const Continuation& c : all) tokens.push_back(c.tokens);
  return tokens;
}

grid::Group alone() {
  const grid::Group world = grid::world_group();
  return world.part(world.rank(), "alone");
}

const Options greedy{}, sampled{.sampling = {.temperature = 0.9, .top_k = 40, .top_p = 0.95}};

class Continuations : public testing::TestWithParam<NamedModel> {};

TEST_P(Continuations, WithACacheAreAsIfRecomputed) {
  const grid::Group one = alone();
  for (Options o : {greedy, sampled}) {
    const auto cached = tokens_of(continued(GetParam().model(), one, o));
    EXPECT_EQ(cached[0].size(), 12);
    EXPECT_EQ(cached[2].size(), 3) << "the sequence is full";
    o.cache = CacheUse::recompute;
    EXPECT_EQ(tokens_of(continued(GetParam().model(), one, o)), cached);
  }
}

template <class T>
void check_batches(const deck::Model& m) {
  const grid::Group one = alone();
  Options o = sampled;
  const auto expected = tokens_of(continued<T>(m, one, o));
  for (const Index batch : {1, 2, 5}) {
    o.batch = batch;
    EXPECT_EQ(tokens_of(continued<T>(m, one, o)), expected) << batch;
  }
}

TEST_P(Continuations, DoNotShowTheBatch) {
  check_batches<float>(GetParam().model());
  check_batches<bf16>(GetParam().model());
}

TEST_P(Continuations, DoNotShowTheTensorRanks) {
  const grid::Group world = grid::world_group();
  for (const Options& o : {greedy, sampled}) {
    const auto split = tokens_of(continued(GetParam().model(), world, o));
    EXPECT_EQ(split, tokens_of(continued(GetParam().model(), alone(), o)));
    // In 16 bits every rank's part is rounded, so the tokens may differ from one rank's. All ranks
    // agree on them.
    std::string mine;
    for (const auto& tokens : tokens_of(continued<bf16>(GetParam().model(), world, o))) {
      for (const Token token : tokens) mine += std::to_string(token) + " ";
    }
    EXPECT_EQ(mine, world.broadcast(mine));
  }
}

INSTANTIATE_TEST_SUITE_P(Families, Continuations,
                         testing::Values(NamedModel{"gpt2", gpt2_model},
                                         NamedModel{"llama", llama_model},
                                         NamedModel{"qwen2", qwen2_model},
                                         NamedModel{"qwen3", qwen3_model}),
                         [](const auto& test) { return test.param.name; });

TEST(Generator, ASeedDecidesTheText) {
  const grid::Group one = alone();
  Options o = sampled;
  const auto first = tokens_of(continued(gpt2_model(), one, o));
  EXPECT_EQ(tokens_of(continued(gpt2_model(), one, o)), first);
  o.sampling.seed = 2;
  EXPECT_NE(tokens_of(continued(gpt2_model(), one, o)), first);
}

// A draw also depends on the number of the prompt, so equal prompts have different continuations.
TEST(Generator, EqualPromptsDiffer) {
  const auto all = tokens_of(
      continued(gpt2_model(), alone(), sampled, {{{1, 2, 3}, 12, 0}, {{1, 2, 3}, 12, 1}}));
  EXPECT_NE(all[0], all[1]);
}

TEST(Generator, EndsAtAnEndToken) {
  const grid::Group one = alone();
  const auto free = continued(gpt2_model(), one, sampled);
  Options o = sampled;
  o.end_tokens = {free[0].tokens[4]};
  std::vector<Token> expected = free[0].tokens;
  expected.resize(std::ranges::find(expected, o.end_tokens[0]) - expected.begin() + 1);
  const Continuation found = continued(gpt2_model(), one, o)[0];
  EXPECT_EQ(found.tokens, expected);
  EXPECT_EQ(found.reason, EndReason::end_token);
  EXPECT_EQ(found.text, free[0].text.substr(0, expected.size() - 1));
}

TEST(Generator, EndsBeforeAStopText) {
  const grid::Group one = alone();
  const auto free = continued(gpt2_model(), one, sampled);
  EXPECT_EQ(free[0].reason, EndReason::length);
  Options o = sampled;
  o.stops = {free[0].text.substr(5, 3)};  // three tokens
  const Continuation found = continued(gpt2_model(), one, o)[0];
  EXPECT_EQ(found.reason, EndReason::stop);
  const auto at = free[0].text.find(o.stops[0]);
  EXPECT_EQ(found.text, free[0].text.substr(0, at));
  EXPECT_EQ(found.tokens.size(), at + 3);
}

}  // namespace
}  // namespace kzero::tests
