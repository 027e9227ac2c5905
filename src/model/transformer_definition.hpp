// Defines a transformer of the GPT-2 or the Llama family through definition.hpp and model.hpp.
#pragma once

#include <utility>

#include "model/definition.hpp"

namespace kzero::model {

class TransformerDefinition : public Definition {
 public:
  TransformerDefinition(const deck::Model& model, const deck::Recompute& recompute,
                        const deck::Train& train = {}, deck::Lora lora = {})
      : model_(model), recompute_(recompute), train_(train), lora_(std::move(lora)) {}

  param::Table table(const TensorRank& tensor) const override;
  param::Trace training_trace() const override;
  param::Trace validation_trace() const override;
  double flops_per_token() const override;
  Recomputed recomputed_per_token() const override;
  std::vector<ModelCollective> tensor_collectives(const TensorRank& tensor, Index rows,
                                                  Dtype precision) const override;
  std::vector<ModelCollective> sequence_collectives(const TensorRank& tensor,
                                                    const SequenceRank& sequence, Index rows,
                                                    Dtype precision) const override;
  /// One block between an embedding and a head of one token.
  Benchmark benchmark(Index most_width, Index sequence) const override;

 private:
  std::unique_ptr<Model<float>> make_as(float type, memory::Arenas& arenas,
                                        const Resources& resources) const override;
  std::unique_ptr<Model<bf16>> make_as(bf16 type, memory::Arenas& arenas,
                                       const Resources& resources) const override;
  std::unique_ptr<Model<fp16>> make_as(fp16 type, memory::Arenas& arenas,
                                       const Resources& resources) const override;

  deck::Model model_;
  deck::Recompute recompute_;
  deck::Train train_;
  deck::Lora lora_;
};

/// The family's entry in families.cpp.
std::shared_ptr<const Definition> define_transformer(const deck::Config& config);

}  // namespace kzero::model
