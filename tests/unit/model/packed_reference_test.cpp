// The first step of the reference cases with packed documents, which were computed one document at
// a time in float64.
#include <gtest/gtest.h>

#include "convert/weights.hpp"
#include "driven_model.hpp"
#include "packed_samples.hpp"
#include "reference/reference_case.hpp"
#include "support/document_file.hpp"

namespace kzero::tests::packed {
namespace {

std::vector<PlacedDocument> documents_of(const ReferenceCase& reference, Index rows) {
  const auto row = reference.numbers("row"), offset = reference.numbers("offset");
  std::vector<PlacedDocument> documents;
  for (const Document& document : read_documents(reference_file(reference.name() + ".docs"))) {
    const std::size_t i = documents.size();
    if (row[i] >= static_cast<double>(rows)) break;
    documents.push_back({document.tokens, document.targets, static_cast<Index>(row[i]),
                         static_cast<Index>(offset[i])});
  }
  return documents;
}

void load(const deck::Model& shape, DrivenModel<float>& model) {
  const convert::Weights weights(shape.initial, shape, model.table);
  for (const auto& unit : model.table) {
    for (const auto& p : unit.params) {
      std::vector<float> values(p.elements());
      weights.load_range(p.name, {0, p.elements()}, values);
      model.set(p.name, values);
    }
  }
  model.spoil_gradients();
}

TEST(PackedReference, LossAndNormOfTheFirstStepAgreeWithFloat64) {
  for (const char* name : {"packed_gpt2", "packed_llama", "packed_qwen2", "packed_qwen3"}) {
    const ReferenceCase reference(name);
    const deck::Config config = reference.config();
    const Index rows = config.train.global_batch;
    const PackedSamples samples(rows, config.model.sequence, documents_of(reference, rows));
    const Guarded<std::int32_t> begin(samples.begin()), end(samples.end());
    const Index targets = samples.target_count();
    EXPECT_EQ(targets, reference.numbers("targets")[0]);
    for (const Index micro : {rows, rows / 2, Index{1}}) {
      DrivenModel<float> model(config.model, micro, {}, model::Passes::all, true);
      model.documents = {begin.vector(), end.vector()};
      load(config.model, model);
      double loss = 0, squares = 0;
      for (Index first = 0; first < rows; first += micro) {
        loss +=
            model.loss_and_gradients(samples, first, 1.0F / static_cast<float>(targets),
                                     first == 0 ? tensor::Accumulate::no : tensor::Accumulate::yes);
      }
      for (const auto& unit : model.table) {
        for (const auto& p : unit.params) {
          for (const double g : model.gradient(p.name)) squares += g * g;
        }
      }
      const double expected_loss = reference.numbers("loss")[0];
      const double expected_norm = reference.numbers("grad_norm")[0];
      EXPECT_NEAR(loss / static_cast<double>(targets), expected_loss, 2e-5 * expected_loss)
          << name << ", micro-batch " << micro;
      EXPECT_NEAR(std::sqrt(squares), expected_norm, 2e-5 * expected_norm)
          << name << ", micro-batch " << micro;
    }
  }
}

}  // namespace
}  // namespace kzero::tests::packed
