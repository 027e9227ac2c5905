// A person sees the checkpoint's contents, but they cannot send commands to the terminal.
#include "checkpoint/inspect.hpp"

#include <fmt/format.h>

#include <functional>

#include "unit/checkpoint/support.hpp"

namespace kzero::checkpoint {

namespace {

class Inspect : public CheckpointTest {};

TEST_F(Inspect, NamesAndTextsAreShownWithoutControlCharacters) {
  std::vector<float> values(6);
  Manifest manifest;
  manifest.precision = "fp32\x1b[31m";
  manifest.state_arrays = three_arrays();
  manifest.parameters = {{"a\x1b[2J\nshards 0", {2, 3}}};
  std::vector<StateShard> shards;
  if (world.is_root())
    shards.push_back(shard_of(manifest.parameters[0].name, {{0, 6}}, {values, values, values}));
  write(world, folder, manifest, shards, 0);
  const std::string text = describe(folder, its_own, Extent::tensors);
  EXPECT_TRUE(contains(text, "format      3, written by kzero ")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("fp32\\x1b[31m"), std::string::npos) << text;
  EXPECT_NE(text.find("  a\\x1b[2J\\nshards 0 [2, 3]\n"), std::string::npos) << text;
}

TEST_F(Inspect, WindowsAndExpertsAreShown) {
  Index number = 0;
  const auto text_of = [&](const std::function<void(deck::Model&)>& change) {
    const fs::path at = folder / fmt::format("{}", number++);
    Manifest manifest;
    manifest.model.family = deck::ModelFamily::llama;
    change(manifest.model);
    manifest.state_arrays = three_arrays();
    manifest.parameters = {{"w", {1}}};
    std::vector<float> values(1);
    std::vector<StateShard> shards;
    if (world.is_root()) shards.push_back(shard_of("w", {{0, 1}}, {values, values, values}));
    write(world, at, manifest, shards, 0);
    return describe(at, its_own, Extent::brief);
  };
  const std::string plain = text_of([](deck::Model&) {});
  EXPECT_FALSE(contains(plain, "window")) << plain;
  EXPECT_FALSE(contains(plain, "experts")) << plain;
  EXPECT_TRUE(contains(text_of([](deck::Model& model) { model.window = 9; }),
                       "\nattention   a window of 9 tokens\n"));
  EXPECT_TRUE(contains(
      text_of([](deck::Model& model) { model.window = 9, model.full_attention_every = 4; }),
      "\nattention   a window of 9 tokens, none in one layer of every 4\n"));
  EXPECT_TRUE(
      contains(text_of([](deck::Model& model) { model.experts = 8, model.experts_per_token = 2; }),
               "\nexperts     8 in each layer, of which 2 compute a token\n"));
}

}  // namespace

}  // namespace kzero::checkpoint
