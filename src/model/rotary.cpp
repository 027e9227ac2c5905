#include "model/rotary.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numbers>

#include "model/shape.hpp"

namespace kzero::model {

namespace {

/// Blends f and f / factor by the number of rotations within the original sequence.
double llama3(const deck::Model& m, double f) {
  const double turns = static_cast<double>(m.rope_original_sequence) * f / (2 * std::numbers::pi);
  const double low = m.rope_low_freq_factor, high = m.rope_high_freq_factor;
  const double kept = std::clamp((turns - low) / (high - low), 0.0, 1.0);
  return (1 - kept) * f / m.rope_factor + kept * f;
}

/// The pair, as a real number, that rotates `turns` times within the original sequence.
double pair_of(const deck::Model& m, double head_dim, double turns) {
  const auto length = static_cast<double>(m.rope_original_sequence);
  return head_dim * std::log(length / (turns * 2 * std::numbers::pi)) /
         (2 * std::log(m.rope_theta));
}

/// Blends f and f / factor with a ramp over the pairs. The ends of the ramp are integers.
double yarn(const deck::Model& m, double head_dim, double pair, double f) {
  const double first = std::max(std::floor(pair_of(m, head_dim, m.rope_beta_fast)), 0.0);
  const double end = std::min(std::ceil(pair_of(m, head_dim, m.rope_beta_slow)), head_dim - 1);
  const double length = end == first ? 0.001 : end - first;  // avoids 0 / 0 as transformers does
  const double scaled = std::clamp((pair - first) / length, 0.0, 1.0);
  return scaled * f / m.rope_factor + (1 - scaled) * f;
}

double attention_factor(const deck::Model& m) {
  if (m.rope_scaling != deck::RopeScaling::yarn) return 1;
  if (m.rope_attention_factor > 0) return m.rope_attention_factor;
  return 0.1 * std::log(m.rope_factor) + 1;
}

}  // namespace

std::vector<double> rotary_frequencies(const deck::Model& m) {
  const auto head_dim = static_cast<double>(TransformerShape(m).head_dim);
  std::vector<double> frequencies;
  for (double pair = 0; pair < head_dim / 2; ++pair) {
    const double f = std::pow(m.rope_theta, -2 * pair / head_dim);
    switch (m.rope_scaling) {
      case deck::RopeScaling::none:
        frequencies.push_back(f);
        break;
      case deck::RopeScaling::linear:
        frequencies.push_back(f / m.rope_factor);
        break;
      case deck::RopeScaling::llama3:
        frequencies.push_back(llama3(m, f));
        break;
      case deck::RopeScaling::yarn:
        frequencies.push_back(yarn(m, head_dim, pair, f));
        break;
    }
  }
  return frequencies;
}

std::vector<float> rotary_table(const deck::Model& m) {
  const std::vector<double> frequencies = rotary_frequencies(m);
  const double factor = attention_factor(m);
  std::vector<float> table;
  for (Index position = 0; position < m.sequence; ++position) {
    const auto at = static_cast<double>(position);
    for (const double f : frequencies)
      table.push_back(static_cast<float>(factor * std::cos(at * f)));
    for (const double f : frequencies)
      table.push_back(static_cast<float>(factor * std::sin(at * f)));
  }
  return table;
}

std::vector<float> rotary_tables(const deck::Model& m) {
  std::vector<float> tables = rotary_table(m);
  if (m.window_rope_theta == 0) return tables;
  deck::Model of_windows = m;
  of_windows.rope_theta = m.window_rope_theta;
  of_windows.rope_scaling = deck::RopeScaling::none;
  std::ranges::copy(rotary_table(of_windows), std::back_inserter(tables));
  return tables;
}

}  // namespace kzero::model
