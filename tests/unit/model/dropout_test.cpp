// Dropout of a model: which calls drop, and what the masks depend on.
#include <gtest/gtest.h>

#include "driven_model.hpp"
#include "random_samples.hpp"

namespace kzero::tests {
namespace {

deck::Model dropping_gpt2(double dropout) {
  deck::Model model;
  model.layers = 2, model.hidden = 15, model.heads = 3, model.sequence = 13;
  model.vocab = 101, model.feed_forward = 31;
  model.dropout = model.attention_dropout = dropout;
  return model;
}

deck::Model dropping_llama(double dropout) {
  deck::Model model = dropping_gpt2(dropout);
  model.family = deck::ModelFamily::llama;
  model.hidden = 18, model.kv_heads = 1, model.tied_embeddings = false;
  return model;
}

class ModelDropout : public RandomSamples {
 protected:
  static std::unique_ptr<DrivenModel<float>> model_of(const deck::Model& shape,
                                                      std::uint64_t seed = 1) {
    deck::Train train;
    train.seed = seed;
    auto model = std::make_unique<DrivenModel<float>>(shape, 2, deck::Recompute{},
                                                      model::Passes::all, false, train);
    model->set_numbers();
    return model;
  }

  double training_loss(DrivenModel<float>& model, Index first) const {
    return model.loss_and_gradients(*sampler, first, 1, tensor::Accumulate::no);
  }
};

TEST_F(ModelDropout, ChangesTrainingAndNotEvaluation) {
  for (const auto& of : {dropping_gpt2, dropping_llama}) {
    const auto plain = model_of(of(0)), dropping = model_of(of(0.2));
    EXPECT_EQ(dropping->loss(*sampler, 0), plain->loss(*sampler, 0));
    EXPECT_EQ(dropping->token_losses(*sampler, 0), plain->token_losses(*sampler, 0));
    EXPECT_EQ(training_loss(*plain, 0), plain->loss(*sampler, 0));
    EXPECT_NE(training_loss(*dropping, 0), plain->loss(*sampler, 0));
    EXPECT_EQ(training_loss(*dropping, 0), training_loss(*dropping, 0));
  }
}

TEST_F(ModelDropout, DependsOnTheSeed) {
  const auto one = model_of(dropping_gpt2(0.2), 1), other = model_of(dropping_gpt2(0.2), 2);
  EXPECT_NE(training_loss(*one, 0), training_loss(*other, 0));
}

// The samples repeat after an epoch, but their masks do not.
TEST_F(ModelDropout, DependsOnTheStep) {
  const auto plain = model_of(dropping_gpt2(0)), dropping = model_of(dropping_gpt2(0.2));
  const Index epoch = sampler->windows();
  EXPECT_EQ(training_loss(*plain, 0), training_loss(*plain, epoch));
  EXPECT_NE(training_loss(*dropping, 0), training_loss(*dropping, epoch));
}

TEST_F(ModelDropout, TakesNoMemory) {
  const auto plain = model_of(dropping_gpt2(0)), dropping = model_of(dropping_gpt2(0.2));
  for (const auto category : {memory::Category::activations, memory::Category::workspace})
    EXPECT_EQ(plain->bytes(category), dropping->bytes(category));
}

}  // namespace
}  // namespace kzero::tests
