// GPT-2 as plain loops in double over named parameters, as a reference for the model's kernels,
// products and layout. Forward and loss only. Gradients come from differences.
#pragma once

#include <cmath>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include "deck/config.hpp"
#include "model/dropout.hpp"
#include "support/numbers.hpp"

namespace kzero::tests {

using Weights = std::map<std::string, std::vector<double>>;
using Rows = std::vector<std::vector<double>>;

/// Training's additions to a model. None without a sample, whose number the masks of dropout have.
struct PlainTraining {
  std::optional<Index> sample{};
  double z_loss = 0;
  std::uint64_t seed = 1;
};

class PlainModel {
 public:
  explicit PlainModel(const deck::Model& model) : m_(model) {}

  /// The sum of the losses of one sequence.
  double loss(const Weights& w, const Token* inputs, const Token* targets,
              const PlainTraining& training = {}) const {
    const model::ModelDropout masks(m_, training.seed);
    Rows x;
    for (Index t = 0; t < m_.sequence; ++t) {
      std::vector<double> row;
      for (Index d = 0; d < m_.hidden; ++d) {
        row.push_back(w.at("wte.weight")[inputs[t] * m_.hidden + d] +
                      w.at("wpe.weight")[t * m_.hidden + d]);
      }
      x.push_back(row);
    }
    drop(x, masks.embedding(training.sample));
    for (Index i = 0; i < m_.layers; ++i) {
      const std::string at = "h." + std::to_string(i) + ".";
      const model::BlockDropout of_block = masks.block(i, training.sample);
      Rows attended = linear(
          w, at + "attn.c_proj",
          attention(linear(w, at + "attn.c_attn", norm(w, at + "ln_1", x)), of_block.weights));
      drop(attended, of_block.attention);
      add(x, attended);
      Rows hidden = linear(w, at + "mlp.c_fc", norm(w, at + "ln_2", x));
      for (auto& row : hidden) {
        for (double& h : row) h = gelu(h);
      }
      Rows fed = linear(w, at + "mlp.c_proj", hidden);
      drop(fed, of_block.feed_forward);
      add(x, fed);
    }
    const auto& output = w.at(m_.tied_embeddings ? "wte.weight" : "lm_head.weight");
    double sum = 0;
    const Rows normal = norm(w, "ln_f", x);
    for (Index t = 0; t < m_.sequence; ++t) {
      double total = 0, at_target = 0;
      for (Index v = 0; v < m_.vocab; ++v) {
        double logit = 0;
        for (Index d = 0; d < m_.hidden; ++d) logit += normal[t][d] * output[v * m_.hidden + d];
        total += std::exp(logit);
        if (v == targets[t]) at_target = logit;
      }
      sum += std::log(total) - at_target + training.z_loss * std::pow(std::log(total), 2);
    }
    return sum;
  }

 private:
  static double gelu(double h) {
    return 0.5 * h * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (h + 0.044715 * h * h * h)));
  }

  /// The factor on one element of a row of `width` elements.
  static double factor(const kernels::Dropout& dropout, Index row, Index column, Index width) {
    if (!dropout.is_on()) return 1;
    const kernels::DropoutRows drawn(dropout, 0, width);
    return as_double(drawn.apply(drawn.word(row, column), 1));
  }

  static void drop(Rows& x, const kernels::Dropout& dropout) {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t d = 0; d < x[t].size(); ++d)
        x[t][d] *= factor(dropout, static_cast<Index>(t), static_cast<Index>(d), std::ssize(x[t]));
    }
  }

  static void add(Rows& x, const Rows& y) {
    for (std::size_t t = 0; t < x.size(); ++t) {
      for (std::size_t d = 0; d < x[t].size(); ++d) x[t][d] += y[t][d];
    }
  }

  static Rows linear(const Weights& w, const std::string& name, const Rows& x) {
    const auto &weight = w.at(name + ".weight"), &bias = w.at(name + ".bias");
    Rows y;
    for (const auto& row : x) {
      std::vector<double> out = bias;
      for (std::size_t i = 0; i < row.size(); ++i) {
        for (std::size_t j = 0; j < out.size(); ++j) out[j] += row[i] * weight[i * out.size() + j];
      }
      y.push_back(out);
    }
    return y;
  }

  Rows norm(const Weights& w, const std::string& name, const Rows& x) const {
    const auto &weight = w.at(name + ".weight"), &bias = w.at(name + ".bias");
    Rows y;
    for (const auto& row : x) {
      const auto width = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (const double a : row) mean += a / width;
      for (const double a : row) variance += (a - mean) * (a - mean) / width;
      std::vector<double> out;
      for (std::size_t i = 0; i < row.size(); ++i) {
        out.push_back((row[i] - mean) / std::sqrt(variance + m_.norm_eps) * weight[i] + bias[i]);
      }
      y.push_back(out);
    }
    return y;
  }

  Rows attention(const Rows& qkv, const kernels::Dropout& weights) const {
    const Index width = m_.hidden / m_.heads;
    Rows out(qkv.size(), std::vector<double>(m_.hidden, 0));
    for (Index h = 0; h < m_.heads; ++h) {
      const Index q = h * width, k = m_.hidden + q, v = 2 * m_.hidden + q;
      for (std::size_t t = 0; t < qkv.size(); ++t) {
        std::vector<double> p;
        double total = 0;
        for (std::size_t s = 0; s <= t; ++s) {
          double score = 0;
          for (Index d = 0; d < width; ++d) score += qkv[t][q + d] * qkv[s][k + d];
          p.push_back(std::exp(score / std::sqrt(static_cast<double>(width))));
          total += p.back();
        }
        for (std::size_t s = 0; s <= t; ++s) {
          const Index row = h * m_.sequence + static_cast<Index>(t);
          const double weight =
              p[s] / total * factor(weights, row, static_cast<Index>(s), m_.sequence);
          for (Index d = 0; d < width; ++d) out[t][q + d] += weight * qkv[s][v + d];
        }
      }
    }
    return out;
  }

  deck::Model m_;
};

}  // namespace kzero::tests
