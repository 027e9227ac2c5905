// A forward-only model gives bitwise the same losses, individually and summed, and uses less
// memory.
#include <gtest/gtest.h>

#include "driven_model.hpp"
#include "random_samples.hpp"

namespace kzero::tests {
namespace {

using memory::Category;
using model::Passes;

deck::Model three_blocks() {
  deck::Model model;
  model.layers = 3, model.hidden = 15, model.heads = 3, model.sequence = 13;
  model.vocab = 101, model.feed_forward = 31;
  return model;
}

deck::Model three_llama_blocks() {
  deck::Model model = three_blocks();
  model.family = deck::ModelFamily::llama;
  model.kv_heads = 1, model.head_dim = 6, model.qk_norm = true, model.tied_embeddings = false;
  return model;
}

template <class T>
class ForwardOnly : public RandomSamples {};

using Precisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(ForwardOnly, Precisions);

TYPED_TEST(ForwardOnly, HasTheLossesOfTraining) {
  for (const deck::Model& shape : {three_blocks(), three_llama_blocks()}) {
    for (const Index batch : {1, 3}) {
      DrivenModel<TypeParam> training(shape, batch);
      DrivenModel<TypeParam> forward(shape, batch, {}, Passes::forward);
      training.set_numbers();
      forward.set_numbers();
      for (const Index first : {0, 2}) {
        const double sum = training.loss(*this->sampler, first);
        const std::vector<float> each = forward.token_losses(*this->sampler, first);
        ASSERT_EQ(std::ssize(each), batch * 13);
        EXPECT_EQ(each, training.token_losses(*this->sampler, first));
        EXPECT_EQ(forward.loss(*this->sampler, first), sum);
        double total = 0;
        for (const float loss : each) total += static_cast<double>(loss);
        if (tensor::on_host) {
          EXPECT_EQ(total, sum);
        } else {
          EXPECT_NEAR(total, sum, 1e-9 * sum);
        }
      }
    }
  }
}

TYPED_TEST(ForwardOnly, TakesMemoryOfOneBlock) {
  deck::Model deep = three_blocks();
  deep.layers = 9;
  const DrivenModel<TypeParam> shallow(three_blocks(), 2, {}, Passes::forward);
  const DrivenModel<TypeParam> forward(deep, 2, {}, Passes::forward), training(deep, 2);
  EXPECT_EQ(forward.bytes(Category::activations), shallow.bytes(Category::activations));
  EXPECT_EQ(forward.bytes(Category::recompute), 0);
  EXPECT_LT(forward.bytes(Category::activations), training.bytes(Category::activations) / 5);
  EXPECT_LT(forward.bytes(Category::workspace), training.bytes(Category::workspace));
}

}  // namespace
}  // namespace kzero::tests
