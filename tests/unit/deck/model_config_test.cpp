// The keys that the file named by model.config adds to a deck, and their interaction with the
// deck's own keys.
#include <gtest/gtest.h>

#include "deck/architecture.hpp"
#include "deck/reader.hpp"
#include "support/error_text.hpp"

namespace kzero::deck {

namespace {

using tests::contains;
using tests::error_of;

constexpr const char* deck_with_config = "[model]\nconfig = \"hf\"\n";

/// Five keys of a file "hf/config.json".
std::vector<ImpliedValue> implied(const std::string& file) {
  EXPECT_EQ(file, "hf");
  return {{"model.family", std::string("llama"), "hf/config.json: model_type is \"llama\""},
          {"model.layers", Index{3}, "hf/config.json: num_hidden_layers is 3"},
          {"model.heads", Index{5}, "hf/config.json: num_attention_heads is 5"},
          {"model.norm_eps", 9.999999747378752e-06, "hf/config.json: rms_norm_eps is 1e-05"},
          {"model.sequence", Index{64}, "hf/config.json: max_position_embeddings is 64", false}};
}

Config read_with(const std::string& deck, const std::vector<std::string>& overrides = {}) {
  return read({"deck.toml", deck}, overrides, {}, implied);
}

TEST(ModelConfig, BringsWhatTheDeckDoesNotSet) {
  const Model model = read_with(deck_with_config, {"model.hidden=40"}).model;
  EXPECT_EQ(model.family, ModelFamily::llama);
  EXPECT_EQ(model.layers, 3);
  EXPECT_EQ(model.heads, 5);
  EXPECT_EQ(model.sequence, 64);
  EXPECT_EQ(model.head_dim, 8);  // computed by the rules later
  EXPECT_EQ(model.config, "hf");
}

TEST(ModelConfig, ByAnOverrideToo) {
  EXPECT_EQ(read_with("[model]\nhidden = 40\n", {"model.config=hf"}).model.layers, 3);
}

TEST(ModelConfig, OtherValuesContradictUnlessTheyMayDiffer) {
  const std::string deck =
      std::string(deck_with_config) + "hidden = 40\nsequence = 16\nlayers = 4\n";
  const std::string text = error_of(ExitCode::usage, [&] { read_with(deck); });
  EXPECT_EQ(text,
            "deck.toml:5:1: model.layers = 4 contradicts model.config, where hf/config.json: "
            "num_hidden_layers is 3");
  EXPECT_EQ(read_with(deck, {"model.layers=3"}).model.sequence, 16);
}

TEST(ModelConfig, SomeCountsMayGrow) {
  const ImpliedValue vocab{
      .path = "model.vocab", .value = Index{1000}, .origin = "", .may_grow = true};
  EXPECT_TRUE(allows(vocab, Index{1002}));
  EXPECT_TRUE(allows(vocab, Index{1000}));
  EXPECT_FALSE(allows(vocab, Index{999}));
}

TEST(ModelConfig, NumbersThatAreOneInFloat32Agree) {
  const Model model = read_with(deck_with_config, {"model.norm_eps=1e-5", "model.hidden=40"}).model;
  EXPECT_EQ(model.norm_eps, 1e-5);  // the deck's spelling
  const auto text = error_of(ExitCode::usage, [&] {
    read_with(deck_with_config, {"model.norm_eps=1.1e-5", "model.hidden=40"});
  });
  EXPECT_TRUE(contains(text, "contradicts model.config")) << text;
  EXPECT_TRUE(is_same_in_fp32(0.1, static_cast<double>(0.1F)));
  EXPECT_FALSE(is_same_in_fp32(0.1, 0.1000001));
  EXPECT_FALSE(is_same_in_fp32(Index{1}, 1.0));
}

TEST(ModelConfig, ARuleThatItBreaksIsBlamedOnIt) {
  const auto text = error_of(ExitCode::usage, [&] {
    read({"deck.toml", deck_with_config}, {}, {}, [](const std::string&) {
      return std::vector<ImpliedValue>{{"model.hidden", Index{30}, "hf/config.json: n_embd is 30"},
                                       {"model.heads", Index{4}, "hf/config.json: n_head is 4"}};
    });
  });
  EXPECT_TRUE(text.starts_with("deck.toml:2:1: model.hidden must be a multiple")) << text;
  EXPECT_TRUE(text.ends_with("; hf/config.json: n_embd is 30")) << text;
}

TEST(ModelConfig, WithoutAReaderItBringsNothing) {
  EXPECT_EQ(read({"deck.toml", deck_with_config}, {}).model.layers, Model{}.layers);
}

}  // namespace

}  // namespace kzero::deck
