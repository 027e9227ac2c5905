#include "convert/upcycling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

#include "base/error.hpp"
#include "base/philox.hpp"
#include "base/printable.hpp"
#include "convert/model_classes.hpp"
#include "convert/names.hpp"
#include "deck/linear_layers.hpp"
#include "deck/rules.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Parameter;
using checkpoint::Range;

constexpr Index statistics_elements = Index{1} << 20;  // that are in memory at a time
constexpr std::uint64_t streams_of_parameters = std::uint64_t{1} << 32;

/// The standard normal number of an element, by Box and Muller. The words of a counter serve two
/// elements.
double normal_number(std::uint64_t seed, std::uint64_t stream, Index element) {
  const auto at = static_cast<std::uint64_t>(element);
  const Philox4 words = philox(seed, at / 2, stream);
  const double radius = std::sqrt(-2 * std::log((words.word[0] + 1.0) * 0x1p-32));
  const double angle = 2 * std::numbers::pi * words.word[1] * 0x1p-32;
  return radius * (at % 2 == 0 ? std::cos(angle) : std::sin(angle));
}

/// Chooses `count` of `channels`, none of them twice.
std::vector<bool> choose(std::uint64_t seed, std::uint64_t stream, Index channels, Index count) {
  std::vector<std::size_t> order(static_cast<std::size_t>(channels));
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::vector<bool> is_chosen(order.size());
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    const Philox4 words = philox(seed, i, stream);
    const auto drawn = std::uint64_t{words.word[0]} << 32U | words.word[1];
    std::swap(order[i], order[i + drawn % (order.size() - i)]);
    is_chosen[order[i]] = true;
  }
  return is_chosen;
}

/// What a parameter of the mixture is.
struct Part {
  std::string dense{};       // name of the dense parameter; empty: a router
  Index expert = -1;         // number among the experts of all blocks; -1: of none
  bool has_columns = false;  // channels are columns, not rows
  std::uint64_t stream = 0;  // of its random numbers
};

std::string block_name(Index block) {
  const TensorNames& names = names_of(deck::ModelFamily::llama);
  return fmt::format("{}{}{}.", names.prefix, names.blocks, block);
}

/// The path of the dense layer that computes the same product.
std::string_view dense_path(const deck::LinearLayer& layer) {
  const auto is_same = [&](const deck::LinearLayer& dense) {
    return dense.product == layer.product && dense.part == layer.part;
  };
  return std::ranges::find_if(deck::llama_layers, is_same)->path;
}

/// The routers and the experts of all blocks, by name. Other parameters have dense names.
std::map<std::string, Part> sparse_parts(const deck::Model& model) {
  std::map<std::string, Part> parts;
  for (Index i = 0; i < model.layers; ++i) {
    const std::string block = block_name(i);
    for (const deck::LinearLayer& layer : deck::linear_layers(model.family)) {
      if (!deck::is_feed_forward(layer)) continue;
      for (Index e = 0; e < model.experts; ++e)
        parts[fmt::format("{}{}.weight", block, deck::expert_path(layer, e))] = {
            .dense = fmt::format("{}{}.weight", block, dense_path(layer)),
            .expert = i * model.experts + e,
            .has_columns = layer.product == deck::Product::down};
      const std::string_view parent = layer.path.substr(0, layer.path.rfind('.'));
      parts[fmt::format("{}{}.gate.weight", block, parent)] = {};
    }
  }
  return parts;
}

/// Reads values of the mixture. The channels of the last parameter are kept: an export reads one
/// parameter after another.
class Mixture {
 public:
  Mixture(const ExportSource& dense, const deck::Model& model,
          const std::vector<Parameter>& of_mixture, const Upcycling& how)
      : dense_(dense), how_(how), router_std_(model.init_std), parts_(sparse_parts(model)) {
    for (const Parameter& p : dense_.parameters) stored_[p.name] = &p;
    std::uint64_t stream = 0;
    for (const Parameter& p : of_mixture) {
      Part& part = parts_.try_emplace(p.name, Part{.dense = p.name}).first->second;
      part.stream = stream++;
      const auto found = stored_.find(part.dense);
      KZERO_REQUIRE(
          part.dense.empty() || (found != stored_.end() && found->second->shape == p.shape),
          ExitCode::other, "internal error: {} is not made of a dense parameter", p.name);
    }
  }

  void read(const Parameter& parameter, Range range, std::span<float> values) {
    const Part& part = parts_.at(parameter.name);
    if (part.dense.empty()) {
      for (Index i = 0; i < range.count; ++i)
        values[static_cast<std::size_t>(i)] = static_cast<float>(
            router_std_ * normal_number(how_.seed, part.stream, range.begin + i));
      return;
    }
    dense_.read(*stored_.at(part.dense), range, values);
    if (part.expert >= 0 && how_.drop > 0) draw_channels(parameter, part, range, values);
  }

  void finish() const { dense_.finish(); }

 private:
  bool is_drawn(const Parameter& parameter, const Part& part, Index element) const {
    const Index columns = parameter.shape[1];
    return drawn_[static_cast<std::size_t>(part.has_columns ? element % columns
                                                            : element / columns)];
  }

  void draw_channels(const Parameter& parameter, const Part& part, Range range,
                     std::span<float> values) {
    if (current_ != parameter.name) measure_channels(parameter, part);
    for (Index i = 0; i < range.count; ++i) {
      const Index element = range.begin + i;
      if (is_drawn(parameter, part, element))
        values[static_cast<std::size_t>(i)] =
            static_cast<float>(mean_ + deviation_ * normal_number(how_.seed, part.stream, element));
    }
  }

  /// Chooses an expert's channels, the same in its three matrices, and finds the mean and the
  /// deviation of their dense values, in fp64 in the order of the elements.
  void measure_channels(const Parameter& parameter, const Part& part) {
    current_ = parameter.name;
    const Index channels = parameter.shape[part.has_columns ? 1 : 0];
    const auto count = static_cast<Index>(how_.drop * static_cast<double>(channels));
    drawn_ = choose(how_.seed, streams_of_parameters + static_cast<std::uint64_t>(part.expert),
                    channels, count);
    double sum = 0, squares = 0, number = 0;
    std::vector<float> chunk;
    for (Index at = 0; at < parameter.elements(); at += statistics_elements) {
      const Range range{at, std::min(statistics_elements, parameter.elements() - at)};
      chunk.resize(static_cast<std::size_t>(range.count));
      dense_.read(*stored_.at(part.dense), range, chunk);
      for (Index i = 0; i < range.count; ++i) {
        if (!is_drawn(parameter, part, at + i)) continue;
        const double value = chunk[static_cast<std::size_t>(i)];
        sum += value, squares += value * value, ++number;
      }
    }
    mean_ = number > 0 ? sum / number : 0;
    deviation_ = number > 0 ? std::sqrt(std::max(0.0, squares / number - mean_ * mean_)) : 0;
  }

  ExportSource dense_;
  Upcycling how_;
  double router_std_;
  std::map<std::string, Part> parts_;
  std::map<std::string, const Parameter*> stored_;  // of the dense model, by name
  std::string current_;                             // the parameter of the members below
  std::vector<bool> drawn_;                         // channels
  double mean_ = 0, deviation_ = 0;
};

}  // namespace

deck::Config upcycled(deck::Config dense, const Upcycling& how, const std::string& from) {
  deck::Model& model = dense.model;
  KZERO_REQUIRE(how.drop >= 0 && how.drop <= 1, ExitCode::usage,
                "--drop must be from 0 to 1, found {}", how.drop);  // NaN
  KZERO_REQUIRE(model.experts == 0, ExitCode::usage,
                "{}: has {} experts already; --experts is for "
                "dense models",
                printable(from), model.experts);
  KZERO_REQUIRE(model.family == deck::ModelFamily::llama, ExitCode::usage,
                "{}: model.family = \"{}\"; --experts is for \"llama\"", printable(from),
                name_of(model.family));
  if (!model.qk_norm) model.family = deck::ModelFamily::mixtral;
  model.experts = how.experts;
  model.experts_per_token = how.experts_per_token;
  model.normalized_gates = true;
  model.router_aux_loss = 0.01;
  model.config.clear();  // they describe the dense model
  model.initial.clear();
  class_of(model, from);
  try {
    deck::resolve(dense, {});
  } catch (const Error& error) {
    throw Error(error.code(), fmt::format("{}: {}\n(--experts sets model.experts, --top-k sets "
                                          "model.experts_per_token)",
                                          printable(from), error.what()));
  }
  return dense;
}

ExportSource upcycled_weights(const ExportSource& dense, const deck::Model& model,
                              std::vector<Parameter> of_mixture, const Upcycling& how) {
  const auto mixture = std::make_shared<Mixture>(dense, model, of_mixture, how);
  return {dense.from, model, std::move(of_mixture),
          [mixture](const Parameter& parameter, Range range, std::span<float> values) {
            mixture->read(parameter, range, values);
          },
          [mixture] { mixture->finish(); }};
}

}  // namespace kzero::convert
