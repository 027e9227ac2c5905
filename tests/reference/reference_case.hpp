// A float64 training run by an independent program (PyTorch's autograd and AdamW): its settings as
// a deck, and its numbers. NAME.h5 holds the settings as attributes, and the datasets initial/,
// gradient/ (of step 0, before clipping) and final/ by parameter name, logits of step 0, loss,
// grad_norm and lr. NAME.safetensors and NAME.tokens.bin are the run's input. Cases of packed
// documents have NAME.docs instead of tokens, the number of targets of each step, and the row and
// offset of each document; make_packed.py made three of them. In weighted_llama documents have
// weights, and NAME.other.docs has each step's documents in another order, packed otherwise. Cases
// of LoRA are packed too; they have
// NAME.adapter, a PEFT folder to start from, and final/ has adapters alone. make_families.py made
// the cases of SmolLM3 and Granite, make_experts.py those of Qwen2-MoE and GLM-4.5, and
// make_optimizers.py those of AdEMAMix, NorMuon, cautious decay and Polar Express. Cases of
// preferences have pairs in NAME.docs and, if their loss has a reference, NAME.logprobs, which
// kzero evaluate wrote for NAME; reference/ has the same in float64. Cases of distillation have
// NAME.top, which kzero evaluate wrote for NAME.teacher.
#pragma once

#include <cmath>
#include <sstream>
#include <string>
#include <vector>

#include "convert/architecture.hpp"
#include "deck/architecture.hpp"
#include "storage/hdf5_file.hpp"
#include "support/data.hpp"

namespace kzero::tests {

class ReferenceCase {
 public:
  explicit ReferenceCase(const std::string& name)
      : name_(name), file_(storage::Hdf5File::open(reference_file(name + ".h5"))) {}

  const std::string& name() const { return name_; }

  std::vector<double> numbers(const std::string& dataset) const {
    return file_.read<double>(dataset);
  }

  deck::Config config() const {
    deck::Config c;
    c.model.layers = integer("layers"), c.model.hidden = integer("hidden");
    c.model.heads = integer("heads"), c.model.sequence = integer("sequence");
    c.model.vocab = integer("vocab");
    c.model.initial = reference_file(name_ + ".safetensors");
    if (is_llama()) set_llama(c.model);
    c.train = {.steps = integer("steps"), .global_batch = integer("global_batch")};
    c.optimizer = {.lr = real("lr"), .min_lr = real("min_lr"), .warmup = integer("warmup")};
    c.optimizer.beta1 = real("beta1"), c.optimizer.beta2 = real("beta2");
    c.optimizer.eps = real("eps"), c.optimizer.weight_decay = real("weight_decay");
    c.optimizer.clip = real("clip");
    if (file_.has_attribute("/", "kind")) set_optimizer(c.optimizer);
    const bool is_packed = name_.starts_with("packed_") || name_.starts_with("lora_") ||
                           name_.starts_with("weighted_");
    if (is_of_pairs()) set_preference(c.preference);
    if (is_distilled()) set_distill(c.distill);
    if (name_.starts_with("lora_")) set_lora(c.lora);
    const bool has_documents = is_packed || is_of_pairs();
    c.data.files = {reference_file(name_ + (has_documents ? ".docs" : ".tokens.bin"))};
    c.data.format = is_of_pairs() ? deck::DataFormat::pairs
                    : is_packed   ? deck::DataFormat::documents
                                  : deck::DataFormat::llmc;
    c.data.order = deck::DataOrder::sequential;
    return c;
  }

  /// The sequences of a micro-batch, over which a mixture of experts is balanced.
  Index micro_batch() const { return integer("micro_batch"); }

  bool is_of_pairs() const {
    return name_.starts_with("dpo_") || name_.starts_with("ipo_") || name_.starts_with("simpo_");
  }

  bool is_distilled() const { return name_.starts_with("distill_"); }

  /// The name of the token embedding.
  const char* embedding() const { return is_llama() ? "model.embed_tokens.weight" : "wte.weight"; }

 private:
  bool is_llama() const {
    return file_.has_attribute("/", "family") &&
           file_.attribute<std::string>("/", "family") != "gpt2";
  }

  void set_optimizer(deck::Optimizer& optimizer) const {
    const auto kind = file_.attribute<std::string>("/", "kind");
    for (const auto& [name, value, meaning] : deck::optimizers) {
      if (name == kind) optimizer.kind = value;
    }
    EXPECT_EQ(name_of(optimizer.kind), kind);
    if (kind == "sgd") optimizer.momentum = optimizer.beta1;
    if (kind == "muon" || kind == "normuon") optimizer.momentum = 0.95, optimizer.nesterov = true;
    if (kind == "ademamix") {
      optimizer.beta3 = real("beta3"), optimizer.alpha = real("alpha");
      optimizer.slow_warmup = integer("slow_warmup");
    }
    if (file_.has_attribute("/", "cautious_decay"))
      optimizer.cautious_decay = integer("cautious_decay") != 0;
    if (file_.has_attribute("/", "polynomials")) {
      const auto polynomials = file_.attribute<std::string>("/", "polynomials");
      for (const auto& [name, value, meaning] : deck::polynomial_sets) {
        if (name == polynomials) optimizer.polynomials = value;
      }
    }
  }

  void set_preference(deck::Preference& preference) const {
    const auto loss = file_.attribute<std::string>("/", "loss");
    for (const auto& [name, value, meaning] : deck::preference_losses) {
      if (name == loss) preference.loss = value;
    }
    const auto set = [&](const char* key, double& value) {
      if (file_.has_attribute("/", key)) value = real(key);
    };
    set("beta", preference.beta), set("smooth", preference.smooth);
    set("gamma", preference.gamma), set("nll", preference.nll);
    if (has_reference(preference.loss)) preference.reference = reference_file(name_ + ".logprobs");
  }

  void set_distill(deck::Distill& distill) const {
    distill.file = {reference_file(name_ + ".top")};
    distill.weight = real("weight"), distill.top = integer("top");
  }

  void set_lora(deck::Lora& lora) const {
    lora.rank = integer("rank");
    lora.alpha = real("alpha");
    lora.initial = reference_file(name_ + ".adapter");
    std::istringstream modules(file_.attribute<std::string>("/", "modules"));
    for (std::string module; std::getline(modules, module, ',');) lora.targets.push_back(module);
  }

  /// The other model settings come from the config.json that transformers wrote.
  void set_llama(deck::Model& model) const {
    model.initial = reference_file(name_);
    for (const deck::ImpliedValue& implied : convert::read_architecture(model.initial))
      deck::set_model_value(*deck::find_key(implied.path), implied.value, model);
    if (file_.has_attribute("/", "aux")) model.router_aux_loss = real("aux");
    if (file_.has_attribute("/", "router_bias_rate"))
      model.router_bias_rate = real("router_bias_rate");
  }

  Index integer(const std::string& key) const { return file_.attribute<Index>("/", key); }
  double real(const std::string& key) const { return file_.attribute<double>("/", key); }

  std::string name_;
  storage::Hdf5File file_;
};

/// ||actual - expected|| / ||expected||, in the L2 norm.
template <class Actual>
double relative_distance(const Actual& actual, const std::vector<double>& expected) {
  double difference = 0, total = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double d = static_cast<double>(actual[i]) - expected[i];
    difference += d * d;
    total += expected[i] * expected[i];
  }
  return std::sqrt(difference / total);
}

}  // namespace kzero::tests
