// Compares gradients of small models of every kind with central differences of a plain-loop model
// in double.
#include <gtest/gtest.h>

#include <fstream>

#include "driven_model.hpp"
#include "plain_model.hpp"
#include "reference/reference_case.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {
namespace {

struct Case {
  const char* name;
  Index layers, hidden, heads, sequence, vocab, feed_forward, batch;
  bool tied;
};

class PlainGradient : public testing::TestWithParam<Case> {
 protected:
  PlainGradient() : c(GetParam()) {
    model.layers = c.layers, model.hidden = c.hidden, model.heads = c.heads;
    model.sequence = c.sequence, model.vocab = c.vocab, model.feed_forward = c.feed_forward;
    model.tied_embeddings = c.tied;
    const auto path = folder.path() / "tokens";
    std::string tokens;
    // Uses few of the tokens, so that some rows of the table occur often and others never.
    for (const double x : numbers<float>(c.batch * c.sequence + 1, 5)) {
      tokens += static_cast<char>(std::abs(x) * static_cast<double>(c.vocab));
    }
    std::ofstream(path, std::ios::binary) << tokens;
    const auto stream = std::make_shared<data::TokenStream>(std::vector{path.string()},
                                                            deck::DataFormat::bytes, 256);
    sampler = std::make_unique<data::Sampler>(stream, c.sequence, 0, c.batch,
                                              deck::DataOrder::sequential, 0);
    std::uint64_t seed = 10;
    for (const auto& unit : model::parameter_table(model)) {
      for (const auto& p : unit.params) {
        auto& values = weights[p.name];
        const double centre = p.init == param::Init::ones ? 1 : 0;
        for (const double x : numbers<float>(p.elements(), ++seed, 0.5))
          values.push_back(static_cast<float>(centre + x));
      }
    }
  }

  /// The sum of losses, as `train` computes it if given.
  double plain_loss(const deck::Train* train = nullptr) const {
    const PlainModel plain(model);
    std::vector<Token> inputs(c.batch * c.sequence), targets(inputs);
    sampler->batch(0, c.batch, inputs.data(), targets.data());
    double sum = 0;
    for (Index b = 0; b < c.batch; ++b) {
      const PlainTraining training =
          train ? PlainTraining{b, train->z_loss, train->seed} : PlainTraining{};
      sum += plain.loss(weights, inputs.data() + b * c.sequence, targets.data() + b * c.sequence,
                        training);
    }
    return sum;
  }

  /// Fourth order. The errors are h^4 times the fifth derivative, and 1e-16 / h by rounding, both
  /// below 1e-12.
  std::vector<double> plain_gradient(const std::string& name, const deck::Train& train) {
    constexpr double h = 1e-3;
    std::vector<double> gradient;
    for (double& w : weights.at(name)) {
      const double at = w;
      const auto moved = [&](double by) { return w = at + by, plain_loss(&train); };
      gradient.push_back((8 * (moved(h) - moved(-h)) - (moved(2 * h) - moved(-2 * h))) / (12 * h));
      w = at;
    }
    return gradient;
  }

  void compare(const deck::Train& train);

  Case c;
  deck::Model model;
  TemporaryFolder folder;
  std::unique_ptr<data::Sampler> sampler;
  Weights weights;
};

/// Compares a model with the plain loops. The accumulated one has a sequence per micro-batch.
void PlainGradient::compare(const deck::Train& train) {
  DrivenModel<float> whole(model, c.batch, {}, model::Passes::all, false, train),
      accumulated(model, 1, {}, model::Passes::all, false, train);
  for (auto* m : {&whole, &accumulated}) {
    for (const auto& [name, values] : weights) m->set(name, values);
    m->spoil_gradients();
  }
  const double validation_loss = plain_loss();
  EXPECT_NEAR(whole.loss(*sampler, 0), validation_loss, 1e-5 * validation_loss);
  deck::Train without_z_loss = train;
  without_z_loss.z_loss = 0;
  const double expected_loss = plain_loss(&without_z_loss);
  EXPECT_NEAR(whole.loss_and_gradients(*sampler, 0, 0.25F, tensor::Accumulate::no), expected_loss,
              1e-5 * expected_loss);
  for (Index b = 0; b < c.batch; ++b) {
    accumulated.loss_and_gradients(*sampler, b, 0.25F,
                                   b == 0 ? tensor::Accumulate::no : tensor::Accumulate::yes);
  }
  for (const auto& unit : whole.table) {
    for (const auto& p : unit.params) {
      std::vector<double> expected = plain_gradient(p.name, train);
      for (double& g : expected) g *= 0.25;
      double norm = 0;
      for (const double g : expected) norm += g * g;
      if (norm < 1e-18) {  // with one token, queries and keys have no gradient
        for (const double g : whole.gradient(p.name)) EXPECT_NEAR(g, 0, 1e-6) << p.name;
        continue;
      }
      EXPECT_LE(relative_distance(whole.gradient(p.name), expected), 1e-5) << p.name;
      EXPECT_LE(relative_distance(accumulated.gradient(p.name), expected), 1e-5) << p.name;
    }
  }
}

TEST_P(PlainGradient, AgreesWithDifferences) { compare({}); }

TEST_P(PlainGradient, AgreesWithDifferencesWithZLoss) {
  deck::Train train;
  train.z_loss = 0.1;
  compare(train);
}

// Differences hold the masks fixed, because they depend on places alone.
TEST_P(PlainGradient, AgreesWithDifferencesWithDropout) {
  deck::Train train;
  train.z_loss = 0.05, train.seed = 11;
  model.dropout = 0.3;
  compare(train);
}

TEST_P(PlainGradient, AgreesWithDifferencesWithDroppedWeights) {
  deck::Train train;
  train.seed = 12;
  model.dropout = 0.2, model.attention_dropout = 0.4;
  compare(train);
}

INSTANTIATE_TEST_SUITE_P(Models, PlainGradient,
                         testing::Values(Case{"untied", 1, 8, 2, 5, 11, 12, 3, false},
                                         Case{"tied", 1, 8, 2, 5, 11, 12, 3, true},
                                         Case{"odd_widths", 2, 9, 3, 7, 13, 7, 2, false},
                                         Case{"one_token", 1, 4, 1, 1, 5, 16, 3, true},
                                         Case{"one_wide_head", 1, 5, 1, 3, 2, 1, 1, false}),
                         [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace kzero::tests
