// Adapters (LoRA): the gradients that follow from those of all weights, and the hash of the frozen
// ones.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>

#include "parity/lora_decks.hpp"
#include "support/full_state.hpp"

namespace kzero::tests {
namespace {

// The gradients of adapters follow from the gradient G of the merged weight W + s B A: s G A^T for
// B and s B^T G for A. Plain gradient descent shows them.

double number(const std::string& name, Index i) {
  const auto start = static_cast<double>(std::hash<std::string>{}(name) % 1009);
  const double wave = std::sin(start + 0.7 * static_cast<double>(i));
  return name.find("norm") != std::string::npos || name.find("ln_") != std::string::npos
             ? 1 + 0.1 * wave
             : 0.2 * wave;
}

struct Layer {
  std::string name;  // of its weight, without ".weight"
  Index in, out;
  bool is_in_out;
};

std::vector<Layer> layers_of(const deck::Config& config) {
  const param::Table table = model::define(config)->table({});
  std::vector<Layer> layers;
  for (const param::UnitSpec& unit : table) {
    for (std::size_t i = 0; unit.trains && i < unit.params.size(); i += 2) {
      const param::ParamSpec &a = unit.params[i], &b = unit.params[i + 1];
      layers.push_back({a.name.substr(0, a.name.find(".lora_A")), a.shape[1], b.shape[0],
                        config.model.family == deck::ModelFamily::gpt2});
    }
  }
  return layers;
}

Index at(const Layer& layer, Index o, Index i) {
  return layer.is_in_out ? i * layer.out + o : o * layer.in + i;
}

/// s B A in the weight's order.
std::vector<double> product_of(const Layer& layer, const deck::Lora& lora) {
  std::vector<double> product(static_cast<std::size_t>(layer.in * layer.out));
  const double scale = lora.alpha / static_cast<double>(lora.rank);
  for (Index o = 0; o < layer.out; ++o) {
    for (Index i = 0; i < layer.in; ++i) {
      double sum = 0;
      for (Index r = 0; r < lora.rank; ++r)
        sum += number(layer.name + ".lora_B.weight", o * lora.rank + r) *
               number(layer.name + ".lora_A.weight", r * layer.in + i);
      product[static_cast<std::size_t>(at(layer, o, i))] = scale * sum;
    }
  }
  return product;
}

/// Initial values: number(), plus `more` for weights that have an entry.
engine::InitialValues numbers(std::map<std::string, std::vector<double>> more = {}) {
  return [more = std::move(more)](const param::ParamSpec& p, const checkpoint::Range& range,
                                  std::span<float> values) {
    const auto found = more.find(p.name);
    for (Index i = 0; i < range.count; ++i) {
      const Index place = range.begin + i;
      const double added = found == more.end() ? 0 : found->second[static_cast<std::size_t>(place)];
      values[static_cast<std::size_t>(i)] = static_cast<float>(number(p.name, place) + added);
    }
  };
}

/// Loss of one step, and the change that it made to each parameter: minus the gradient.
struct Step {
  double loss = 0;
  std::map<std::string, std::vector<double>> gradients;
};

Step one_step(const deck::Config& config, const grid::Group& group,
              const engine::InitialValues& values, const engine::InitialValues& adapters = {}) {
  Training training(config, group);
  training.engine->initialise(values, adapters);
  const FullState before = full_state(training.engine->owned_shards(), group);
  Step step;
  step.loss = training.step(0).loss;
  for (const auto& [name, after] : full_state(training.engine->owned_shards(), group)) {
    if (!name.ends_with("/master")) continue;
    std::vector<double>& gradient = step.gradients[name.substr(0, name.find('/'))];
    for (std::size_t i = 0; i < after.size(); ++i)
      gradient.push_back(double{before.at(name)[i]} - double{after[i]});
  }
  return step;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& expected,
                 const std::string& what) {
  ASSERT_EQ(found.size(), expected.size()) << what;
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    difference += (found[i] - expected[i]) * (found[i] - expected[i]);
    total += expected[i] * expected[i];
  }
  EXPECT_GT(total, 0) << what;
  EXPECT_LE(std::sqrt(difference / total), 2e-4) << what;
}

void expect_chain_rule(const deck::Config& lora, const grid::Group& group) {
  deck::Config merged = lora;
  merged.lora = {};
  std::map<std::string, std::vector<double>> products;
  for (const Layer& layer : layers_of(lora))
    products[layer.name + ".weight"] = product_of(layer, lora.lora);
  const Step whole = one_step(merged, group, numbers(products));
  const Step step = one_step(lora, group, numbers(), numbers());
  EXPECT_NEAR(step.loss, whole.loss, 1e-5 * whole.loss);
  EXPECT_EQ(step.gradients.size(), 2 * products.size());
  const double scale = lora.lora.alpha / static_cast<double>(lora.lora.rank);
  for (const Layer& layer : layers_of(lora)) {
    const auto& g = whole.gradients.at(layer.name + ".weight");
    const std::string a_name = layer.name + ".lora_A.weight",
                      b_name = layer.name + ".lora_B.weight";
    std::vector<double> a(step.gradients.at(a_name).size()), b(step.gradients.at(b_name).size());
    for (Index o = 0; o < layer.out; ++o) {
      for (Index i = 0; i < layer.in; ++i) {
        const double weighted = scale * g[static_cast<std::size_t>(at(layer, o, i))];
        for (Index r = 0; r < lora.lora.rank; ++r) {
          const Index in_a = r * layer.in + i, in_b = o * lora.lora.rank + r;
          a[static_cast<std::size_t>(in_a)] += weighted * number(b_name, in_b);
          b[static_cast<std::size_t>(in_b)] += weighted * number(a_name, in_a);
        }
      }
    }
    expect_near(step.gradients.at(a_name), a, a_name);
    expect_near(step.gradients.at(b_name), b, b_name);
  }
}

TEST(Lora, GradientsFollowFromThoseOfTheMergedWeights) {
  const grid::Group group = first_ranks(launch_ranks());
  for (const Index tensor : lora_tensor_sizes(1)) {
    deck::Config config = lora_deck(tensor);
    config.optimizer = {.kind = deck::OptimizerKind::sgd,
                        .lr = 1,
                        .min_lr = 1,
                        .schedule = deck::Schedule::constant,
                        .momentum = 0,
                        .weight_decay = 0,
                        .clip = 0};
    config.zero.stage = 3;
    for (const bool sequence_parallel : {false, true}) {
      if (sequence_parallel && tensor == 1) continue;
      config.model.sequence_parallel = sequence_parallel;
      SCOPED_TRACE(std::to_string(tensor) + " tensor ranks" +
                   (sequence_parallel ? ", sequence parallel" : ""));
      expect_chain_rule(with_lora(config), group);
      expect_chain_rule(with_lora(as_llama(config, 2)), group);  // 4 ranks copy the KV heads
    }
  }
}

TEST(Lora, TheHashOfTheBaseDependsOnEveryValueAndOnNoPrecision) {
  const grid::Group group = first_ranks(launch_ranks());
  const auto hash = [&](Dtype precision, Index stage, double more) {
    deck::Config config = with_lora(lora_deck(1, precision));
    config.zero.stage = stage;
    Training training(config, group);
    training.engine->initialise(
        [&](const param::ParamSpec& p, const checkpoint::Range& range, std::span<float> values) {
          numbers()(p, range, values);
          const bool has_first = p.name == "ln_f.bias" && range.begin == 0;
          if (has_first) values[0] += static_cast<float>(more);
        },
        {});
    return training.engine->base_hash();
  };
  const std::uint64_t expected = hash(Dtype::fp32, 0, 0);
  EXPECT_NE(expected, 0U);
  EXPECT_EQ(hash(Dtype::bf16, 3, 0), expected);
  EXPECT_NE(hash(Dtype::fp32, 0, 1e-6), expected);
}

}  // namespace
}  // namespace kzero::tests
