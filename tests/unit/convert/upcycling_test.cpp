// Dense models turned into mixtures of experts: whose values the parts have, and what is refused.
#include "convert/upcycling.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>

#include "convert/architecture.hpp"
#include "convert/export.hpp"
#include "deck/reader.hpp"
#include "unit/convert/models.hpp"

namespace kzero::convert {

namespace {

using Matrix = std::vector<float>;

/// A reference case that is dense, and the mixture that it becomes.
struct Upcycled {
  Upcycled(const std::string& name, const Upcycling& how)
      : folder(fs::path(KZERO_TEST_DATA) / "reference" / name),
        dense(deck::read({"deck", "[data]\nformat = \"llmc\""}, {"model.config=" + folder.string()},
                         {}, read_architecture)),
        sparse(upcycled(dense, how, name)),
        weights(weights_of(folder, dense.model)),
        source(file_weights(weights, folder.string(), dense.model,
                            model::parameter_table(dense.model))),
        mixture(upcycled_weights(source, sparse.model,
                                 checkpoint::parameters_of(model::parameter_table(sparse.model)),
                                 how)) {}

  const checkpoint::Parameter& parameter(const std::string& parameter_name) const {
    return *std::ranges::find(mixture.parameters, parameter_name, &checkpoint::Parameter::name);
  }

  /// All values of a parameter of the mixture, read in parts of `count`.
  Matrix read(const std::string& parameter_name, Index count = 1000000) const {
    const checkpoint::Parameter& p = parameter(parameter_name);
    Matrix values(static_cast<std::size_t>(p.elements()));
    for (Index at = 0; at < p.elements(); at += count) {
      const checkpoint::Range range{at, std::min(count, p.elements() - at)};
      mixture.read(p, range,
                   std::span(values).subspan(static_cast<std::size_t>(at),
                                             static_cast<std::size_t>(range.count)));
    }
    return values;
  }

  Matrix stored(const std::string& parameter_name) const {
    const auto& p =
        *std::ranges::find(source.parameters, parameter_name, &checkpoint::Parameter::name);
    Matrix values(static_cast<std::size_t>(p.elements()));
    source.read(p, {0, p.elements()}, values);
    return values;
  }

  fs::path folder;
  deck::Config dense, sparse;
  Weights weights;
  ExportSource source, mixture;
};

struct Moments {
  double mean = 0, deviation = 0;
};

Moments moments_of(const Matrix& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean) * (value - mean);
  return {mean, std::sqrt(squares / count)};
}

struct Names {
  const char *of_case, *part, *gate, *up, *down;
};

class Mixtures : public testing::TestWithParam<Names> {
 protected:
  std::string name(Index layer, Index expert, const char* matrix) const {
    return fmt::format("model.layers.{}.{}.experts.{}.{}.weight", layer, GetParam().part, expert,
                       matrix);
  }
};

INSTANTIATE_TEST_SUITE_P(All, Mixtures,
                         testing::Values(Names{"qwen3", "mlp", "gate_proj", "up_proj", "down_proj"},
                                         Names{"llama_even", "block_sparse_moe", "w1", "w3", "w2"}),
                         [](const auto& test) { return std::string(test.param.of_case); });

TEST_P(Mixtures, EachExpertIsACopyAndTheRouterIsDrawn) {
  const Names& names = GetParam();
  const Upcycled model(names.of_case, {.experts = 5, .experts_per_token = 3});
  EXPECT_EQ(model.sparse.model.experts, 5);
  EXPECT_EQ(model.sparse.model.experts_per_token, 3);
  EXPECT_TRUE(model.sparse.model.normalized_gates);
  EXPECT_EQ(model.sparse.model.feed_forward, model.dense.model.feed_forward);
  const std::string block = "model.layers.1.";
  for (const Index expert : {0, 4}) {
    EXPECT_EQ(model.read(name(1, expert, names.gate)),
              model.stored(block + "mlp.gate_proj.weight"));
    EXPECT_EQ(model.read(name(1, expert, names.up)), model.stored(block + "mlp.up_proj.weight"));
    EXPECT_EQ(model.read(name(1, expert, names.down)),
              model.stored(block + "mlp.down_proj.weight"));
  }
  std::size_t dense_names = 0;
  for (const checkpoint::Parameter& p : model.mixture.parameters) {
    if (contains(p.name, "experts") || contains(p.name, ".gate.weight")) continue;
    EXPECT_EQ(model.read(p.name), model.stored(p.name)) << p.name;
    ++dense_names;
  }
  EXPECT_EQ(dense_names, model.source.parameters.size() -
                             3 * static_cast<std::size_t>(model.dense.model.layers));
  const std::string router = fmt::format("{}.gate.weight", names.part);
  const Matrix first = model.read("model.layers.0." + router), second = model.read(block + router);
  EXPECT_EQ(first.size(), static_cast<std::size_t>(5 * model.dense.model.hidden));
  EXPECT_NE(first, second);
  Matrix both = first;
  both.insert(both.end(), second.begin(), second.end());
  // 5 standard errors of the mean and of the deviation of n normal numbers.
  const auto n = static_cast<double>(both.size());
  const Moments found = moments_of(both);
  EXPECT_LT(std::abs(found.mean), 5 * 0.02 / std::sqrt(n));
  EXPECT_LT(std::abs(found.deviation - 0.02), 5 * 0.02 / std::sqrt(2 * n));
}

TEST_P(Mixtures, TheSeedAloneDecides) {
  const Names& names = GetParam();
  const auto read = [&](std::uint64_t seed, Index count) {
    const Upcycled model(names.of_case, {.experts = 3, .drop = 0.5, .seed = seed});
    std::map<std::string, Matrix> all;
    for (const checkpoint::Parameter& p : model.mixture.parameters)
      all[p.name] = model.read(p.name, count);
    return all;
  };
  const auto whole = read(7, 1000000), in_parts = read(7, 1001), other = read(8, 1000000);
  EXPECT_EQ(whole, in_parts);
  for (const std::string& drawn : {fmt::format("model.layers.0.{}.gate.weight", names.part),
                                   name(0, 0, names.gate), name(1, 2, names.down)})
    EXPECT_NE(whole.at(drawn), other.at(drawn)) << drawn;
}

// The channels that are drawn anew are the same in an expert's three matrices. Their values have
// the moments of those that they replace.
TEST_P(Mixtures, DroppedChannelsAreDrawnAnew) {
  const Names& names = GetParam();
  const Upcycled model(names.of_case, {.experts = 3, .drop = 0.3});
  const auto width = static_cast<std::size_t>(model.dense.model.feed_forward);
  const auto hidden = static_cast<std::size_t>(model.dense.model.hidden);
  std::vector<std::vector<bool>> of_experts;
  for (const Index layer : {0, 1}) {
    for (const Index expert : {0, 1, 2}) {
      std::optional<std::vector<bool>> changed;
      for (const auto& [dense_name, sparse_name] :
           {std::pair("gate_proj", names.gate), std::pair("up_proj", names.up),
            std::pair("down_proj", names.down)}) {
        const bool is_down = dense_name == std::string("down_proj");
        const Matrix before =
            model.stored(fmt::format("model.layers.{}.mlp.{}.weight", layer, dense_name));
        const Matrix now = model.read(name(layer, expert, sparse_name));
        std::vector<bool> here(width);
        Matrix replaced, drawn;
        for (std::size_t i = 0; i < now.size(); ++i) {
          if (now[i] == before[i]) continue;
          here[is_down ? i % width : i / hidden] = true;
          replaced.push_back(before[i]), drawn.push_back(now[i]);
        }
        EXPECT_EQ(drawn.size(),
                  static_cast<std::size_t>(0.3 * static_cast<double>(width)) * hidden);
        EXPECT_EQ(changed.value_or(here), here) << sparse_name;
        changed = here;
        const Moments was = moments_of(replaced), is = moments_of(drawn);
        const auto n = static_cast<double>(drawn.size());
        EXPECT_LT(std::abs(is.mean - was.mean), 5 * was.deviation / std::sqrt(n));
        EXPECT_LT(std::abs(is.deviation - was.deviation), 5 * was.deviation / std::sqrt(2 * n));
      }
      EXPECT_EQ(std::ranges::find(of_experts, *changed), of_experts.end());
      of_experts.push_back(*changed);
    }
  }
}

class UpcyclingTest : public FolderTest {};

TEST_F(UpcyclingTest, AnExportIsAMixtureThatIsReadAgain) {
  for (const auto& [name, type] :
       {std::pair("qwen3", "Qwen3MoeForCausalLM"), std::pair("llama_scaled", "MixtralForCausalLM"),
        std::pair("mistral_window", "MixtralForCausalLM")}) {
    const Upcycled model(name, {.experts = 4});
    const fs::path to = folder / name;
    export_weights(model.mixture, export_target(to));
    std::ifstream stream(to / "config.json");
    const auto config = nlohmann::json::parse(stream);
    EXPECT_EQ(config.at("architectures"), nlohmann::json::array({type}));
    EXPECT_EQ(config.at("router_aux_loss_coef"), 0.01);
    EXPECT_TRUE(differences({"config.json", config.dump()}, model.sparse.model).empty());
    const Weights again = weights_of(to, model.sparse.model);
    EXPECT_EQ(again.note(), "");
    for (const checkpoint::Parameter& p : model.mixture.parameters) {
      Matrix values(static_cast<std::size_t>(p.elements()));
      again.load_range(p.name, {0, p.elements()}, values);
      EXPECT_EQ(values, model.read(p.name)) << p.name;
    }
  }
}

TEST_F(UpcyclingTest, WhatCannotBecomeAMixtureIsRefused) {
  const auto refused = [](ExitCode code, const Upcycling& how,
                          const std::function<void(deck::Model&)>& change) {
    deck::Config config;
    config.model.family = deck::ModelFamily::llama;
    config.data.format = deck::DataFormat::llmc;
    change(config.model);
    deck::resolve(config, {});
    return error_of(code, [&] { upcycled(config, how, "hf"); });
  };
  const auto plain = [](deck::Model&) {};
  EXPECT_TRUE(contains(refused(ExitCode::usage, {.experts = 2, .experts_per_token = 3}, plain),
                       "model.experts_per_token must be from 1 to model.experts = 2, found 3\n"
                       "(--experts sets model.experts, --top-k sets model.experts_per_token)"));
  EXPECT_EQ(refused(ExitCode::usage, {.experts = 2},
                    [](deck::Model& model) { model.family = deck::ModelFamily::gpt2; }),
            "hf: model.family = \"gpt2\"; --experts is for \"llama\"");
  EXPECT_EQ(refused(ExitCode::usage, {.experts = 2},
                    [](deck::Model& model) { model.experts = 8, model.experts_per_token = 2; }),
            "hf: has 8 experts already; --experts is for dense models");
  EXPECT_TRUE(contains(
      refused(ExitCode::files, {.experts = 2}, [](deck::Model& model) { model.qkv_bias = true; }),
      "\n  MixtralForCausalLM lacks model.qkv_bias = true"));
}

}  // namespace

}  // namespace kzero::convert
