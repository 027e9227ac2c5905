// A model that only runs forward: the same losses to the last bit, one by one or in their sum, and
// less memory.
#include <gtest/gtest.h>

#include <fstream>

#include "driven_model.hpp"
#include "support/temporary_folder.hpp"

namespace kzero::tests {
namespace {

using memory::Category;
using model::Passes;

deck::Model gpt2() {
  deck::Model model;
  model.layers = 3, model.hidden = 15, model.heads = 3, model.sequence = 13;
  model.vocab = 101, model.feed_forward = 31;
  return model;
}

deck::Model llama() {
  deck::Model model = gpt2();
  model.family = deck::ModelFamily::llama;
  model.kv_heads = 1, model.head_dim = 6, model.qk_norm = true, model.tied_embeddings = false;
  return model;
}

template <class T>
class ForwardOnly : public testing::Test {
 protected:
  ForwardOnly() {
    const auto path = folder.path() / "tokens";
    std::string tokens;
    for (const double x : numbers<float>(8 * 13 + 1, 5))
      tokens += static_cast<char>(std::abs(x) * 101);
    std::ofstream(path, std::ios::binary) << tokens;
    const auto stream = std::make_shared<data::TokenStream>(std::vector{path.string()},
                                                            deck::DataFormat::bytes, 256);
    sampler = std::make_unique<data::Sampler>(stream, 13, 0, 8, deck::DataOrder::sequential, 0);
  }

  static void fill(DrivenModel<T>& model) {
    std::uint64_t seed = 10;
    for (const auto& unit : model.table) {
      for (const auto& p : unit.params) {
        auto values = numbers<float>(p.elements(), ++seed, 0.5);
        if (p.init == param::Init::ones)
          for (auto& value : values) value += 1;
        model.set(p.name, values);
      }
    }
  }

  TemporaryFolder folder;
  std::unique_ptr<data::Sampler> sampler;
};

using Precisions = testing::Types<float, bf16, fp16>;
TYPED_TEST_SUITE(ForwardOnly, Precisions);

TYPED_TEST(ForwardOnly, HasTheLossesOfTraining) {
  for (const deck::Model& shape : {gpt2(), llama()}) {
    for (const Index batch : {1, 3}) {
      DrivenModel<TypeParam> training(shape, batch);
      DrivenModel<TypeParam> forward(shape, batch, {}, Passes::forward);
      this->fill(training);
      this->fill(forward);
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
  deck::Model deep = gpt2();
  deep.layers = 9;
  const DrivenModel<TypeParam> shallow(gpt2(), 2, {}, Passes::forward);
  const DrivenModel<TypeParam> forward(deep, 2, {}, Passes::forward), training(deep, 2);
  EXPECT_EQ(forward.bytes(Category::activations), shallow.bytes(Category::activations));
  EXPECT_EQ(forward.bytes(Category::recompute), 0);
  EXPECT_LT(forward.bytes(Category::activations), training.bytes(Category::activations) / 5);
  EXPECT_LT(forward.bytes(Category::workspace), training.bytes(Category::workspace));
}

}  // namespace
}  // namespace kzero::tests
