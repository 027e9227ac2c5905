// Defines a transformer of the GPT-2 or the Llama family through definition.hpp and model.hpp.
#pragma once

#include <utility>

#include "model/definition.hpp"

namespace kzero::model {

class TransformerDefinition : public Definition {
 public:
  TransformerDefinition(const deck::Model& model, const deck::Recompute& recompute,
                        const deck::Train& train = {}, deck::Lora lora = {},
                        deck::PreferenceLoss preference = deck::PreferenceLoss::none,
                        bool distills = false)
      : model_(model),
        recompute_(recompute),
        train_(train),
        lora_(std::move(lora)),
        preference_(preference),
        distills_(distills) {}

  param::Table table(const TensorRank& tensor) const override;
  param::Trace training_trace() const override;
  param::Trace validation_trace() const override;
  std::vector<ModelCollective> tensor_collectives(const TensorRank& tensor, Index rows,
                                                  Dtype precision) const override;
  std::vector<ModelCollective> sequence_collectives(const TensorRank& tensor,
                                                    const SequenceRank& sequence, Index rows,
                                                    Dtype precision) const override;
  /// One block between an embedding and a head of one token.
  Benchmark benchmark(Index max_width, Index sequence) const override;

 private:
  std::unique_ptr<Model<float>> make_as(float type, memory::Arenas& arenas,
                                        const Resources& resources) const override;
  std::unique_ptr<Model<bf16>> make_as(bf16 type, memory::Arenas& arenas,
                                       const Resources& resources) const override;
  std::unique_ptr<Model<fp16>> make_as(fp16 type, memory::Arenas& arenas,
                                       const Resources& resources) const override;

  /// Whether the loss needs those of all rows before their gradients.
  bool repeats_head() const { return preference_ != deck::PreferenceLoss::none; }

  deck::Model model_;
  deck::Recompute recompute_;
  deck::Train train_;
  deck::Lora lora_;
  deck::PreferenceLoss preference_;
  bool distills_;  // from a teacher
};

/// The units in forward order: 0 is the embedding, 1 .. L are the blocks, L + 1 is the head. With
/// adapters, these are frozen, and L + 2 .. 2 L + 1 are the adapters of the blocks. Names and
/// shapes are those of the family's Hugging Face files. Matrices are initialized from a normal
/// distribution with the deck's init_std. With init = "scaled", those that write to the residual
/// stream use init_std / sqrt(2 L). Parameters split by tensor parallelism have local shapes. The
/// others are replicated.
param::Table parameter_table(const deck::Model& model, const TensorRank& tensor = {},
                             const deck::Lora& lora = {});

}  // namespace kzero::model
