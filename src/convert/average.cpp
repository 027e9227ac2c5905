#include "convert/average.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <memory>
#include <numbers>

#include "base/checksum.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "convert/finite.hpp"
#include "convert/weighted_sum.hpp"
#include "deck/architecture.hpp"

namespace kzero::convert {

namespace {

using checkpoint::Found;
using checkpoint::Parameter;
using checkpoint::Range;

constexpr double largest_excess = 1e-9;  // of a sum of weights over 1
constexpr Index sum_elements = Index{1} << 18;

/// The mean of a decay's factor between two places, where 0 is its first step and 1 its last.
using MeanFactor = double (*)(double from, double to);

/// Of the factor 1 - x.
double linear_mean(double from, double to) { return 1 - (from + to) / 2; }

/// Of (1 + cos(pi x)) / 2.
double cosine_mean(double from, double to) {
  const double half = std::numbers::pi * (to - from) / 2;
  return (1 + std::cos(std::numbers::pi * (from + to) / 2) * std::sin(half) / half) / 2;
}

/// Of 1 - sqrt(x).
double root_mean(double from, double to) {
  const double a = std::sqrt(from), b = std::sqrt(to);
  return 1 - 2 * (from + a * b + to) / (3 * (a + b));
}

/// Null if no decay has this name.
MeanFactor decay_of(const std::string& name) {
  if (name == "linear") return linear_mean;
  if (name == "cosine") return cosine_mean;
  if (name == "1-sqrt") return root_mean;
  return nullptr;
}

std::vector<double> weights_of_decay(const std::string& name, MeanFactor mean_factor,
                                     std::span<const Index> steps) {
  KZERO_REQUIRE(steps.size() > 1, ExitCode::usage,
                "--average {}: a decay needs two checkpoints or more, found one", name);
  for (std::size_t i = 1; i < steps.size(); ++i)
    KZERO_REQUIRE(steps[i - 1] < steps[i], ExitCode::usage,
                  "--average {}: the steps of the checkpoints have to ascend, found {} before {}",
                  name, steps[i - 1], steps[i]);
  const auto place_of = [&](Index step) {
    return static_cast<double>(step - steps.front()) /
           static_cast<double>(steps.back() - steps.front());
  };
  std::vector<double> weights;
  double before = 1;  // the factor of the changes up to the previous checkpoint
  for (std::size_t i = 1; i < steps.size(); ++i) {
    const double factor = mean_factor(place_of(steps[i - 1]), place_of(steps[i]));
    weights.push_back(before - factor);
    before = factor;
  }
  weights.push_back(before);
  return weights;
}

std::vector<double> weights_in(const std::string& rule, std::size_t parts) {
  std::vector<double> weights;
  const char* const end = rule.data() + rule.size();
  for (const char* at = rule.data();; ++at) {
    double number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    KZERO_REQUIRE(
        error == std::errc{} && std::isfinite(number) && (rest == end || *rest == ','),
        ExitCode::usage,
        "--average has to be mean, linear, cosine, 1-sqrt, or numbers such as 0.5,0.3,0.2, "
        "found {}",
        printable_start(rule));
    weights.push_back(number);
    at = rest;
    if (at == end) break;
  }
  KZERO_REQUIRE(weights.size() == parts, ExitCode::usage,
                "--average {}: there {} {} weight{} for {} checkpoint{}", rule,
                weights.size() == 1 ? "is" : "are", weights.size(), weights.size() == 1 ? "" : "s",
                parts, parts == 1 ? "" : "s");
  double sum = 0;
  for (const double one : weights) sum += one;
  KZERO_REQUIRE(std::abs(sum - 1) <= largest_excess, ExitCode::usage,
                "--average {}: the weights have to add up to 1, to within {}, found {}", rule,
                largest_excess, sum);
  return weights;
}

bool has_same_adapters(const Found& a, const Found& b) {
  const auto &one = a.manifest.adapters, &other = b.manifest.adapters;
  return one.has_value() == other.has_value() && (!one || is_same_lora(one->lora, other->lora));
}

/// The memory of a sum of `sum_elements`.
struct Terms {
  std::vector<float> values = std::vector<float>(sum_elements);
  std::vector<double> sums = std::vector<double>(sum_elements);
};

}  // namespace

bool is_same_lora(const deck::Lora& a, const deck::Lora& b) {
  return a.rank == b.rank && a.alpha == b.alpha && a.targets == b.targets;
}

std::vector<double> average_weights(const std::string& rule, std::span<const Index> steps) {
  if (rule == "mean")
    return std::vector<double>(steps.size(), 1.0 / static_cast<double>(steps.size()));
  if (const MeanFactor mean_factor = decay_of(rule))
    return weights_of_decay(rule, mean_factor, steps);
  return weights_in(rule, steps.size());
}

void require_alike(std::span<const Found> parts) {
  const Found& last = parts.back();
  for (const Found& part : parts) {
    const auto changes = deck::architecture_changes(part.manifest.model, last.manifest.model);
    KZERO_REQUIRE(changes.empty(), ExitCode::usage,
                  "{}: is of another model than {} ({}), so they have no average",
                  printable(last.path.string()), printable(part.path.string()),
                  fmt::join(changes, "; "));
    KZERO_REQUIRE(has_same_adapters(part, last), ExitCode::usage,
                  "{}: has other [lora] adapters than {}, so they have no average",
                  printable(last.path.string()), printable(part.path.string()));
    if (!last.manifest.adapters) continue;
    const std::uint64_t hash = part.manifest.adapters->base_hash,
                        last_hash = last.manifest.adapters->base_hash;
    KZERO_REQUIRE(hash == last_hash, ExitCode::usage,
                  "{}: its adapters were trained on frozen weights of hash {}, those of {} on "
                  "others of hash {}, so they have no average",
                  printable(last.path.string()), format_checksum(last_hash),
                  printable(part.path.string()), format_checksum(hash));
  }
}

ExportSource averaged_weights(std::span<const Found> parts, const std::vector<double>& weights,
                              const std::string& array) {
  std::vector<ExportSource> sources;
  for (const Found& part : parts) sources.push_back(checkpoint_weights(part, array));
  const auto terms = std::make_shared<Terms>();
  const auto add_up = [=](const Parameter& parameter, Range range, std::span<float> result) {
    const auto count = static_cast<std::size_t>(range.count);
    const auto values = std::span(terms->values).first(count);
    const auto sums = std::span(terms->sums).first(count);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      sources[i].read(parameter, range, values);
      require_finite(parts[i].path.string(), parameter, range, values);
      add_product(weights[i], values, i == 0, sums);
    }
    for (std::size_t e = 0; e < count; ++e) result[e] = static_cast<float>(sums[e]);
    require_finite("the average", parameter, range, result);
  };
  const auto read = [=](const Parameter& parameter, Range range, std::span<float> result) {
    for (Index at = 0; at < range.count; at += sum_elements) {
      const Index count = std::min(sum_elements, range.count - at);
      add_up(parameter, {range.begin + at, count},
             result.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count)));
    }
  };
  const checkpoint::Manifest& manifest = parts.back().manifest;
  return {"the average", model_of(manifest), manifest.parameters, read};
}

}  // namespace kzero::convert
