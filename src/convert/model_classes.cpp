#include "convert/model_classes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "deck/architecture.hpp"
#include "deck/reader.hpp"

namespace kzero::convert {

namespace {

using deck::ModelFamily;

constexpr ModelClass classes[] = {
    {.type = "llama",
     .with_head = "LlamaForCausalLM",
     .alone = "LlamaModel",
     .family = ModelFamily::llama,
     .has_mlp_bias = true,
     .needs_whole_heads = true},
    {.type = "mistral",
     .with_head = "MistralForCausalLM",
     .alone = "MistralModel",
     .family = ModelFamily::llama,
     .keys = {"model.window"},
     .kv_heads = 8,
     .feed_forward = 14336,
     .sequence = 131072,
     .windows = Windows::all,
     .has_attention_bias = false},
    {.type = "qwen2",
     .with_head = "Qwen2ForCausalLM",
     .alone = "Qwen2Model",
     .family = ModelFamily::llama,
     .keys = {"model.qkv_bias"},
     .kv_heads = 32,
     .feed_forward = 22016,
     .sequence = 32768,
     .vocab = 151936,
     .windows = Windows::switched_off,
     .has_attention_bias = false},
    {.type = "qwen3",
     .with_head = "Qwen3ForCausalLM",
     .alone = "Qwen3Model",
     .family = ModelFamily::llama,
     .keys = {"model.qk_norm"},
     .kv_heads = 32,
     .head_dim = 128,
     .feed_forward = 22016,
     .sequence = 32768,
     .vocab = 151936,
     .windows = Windows::switched_off},
    {.type = "qwen3_moe",
     .with_head = "Qwen3MoeForCausalLM",
     .alone = "Qwen3MoeModel",
     .family = ModelFamily::llama,
     .keys = {"model.qk_norm", "model.experts", "model.experts_per_token",
              "model.normalized_gates"},
     .layers = 24,
     .hidden = 2048,
     .kv_heads = 4,
     .feed_forward = 768,
     .sequence = 32768,
     .vocab = 151936,
     .windows = Windows::switched_off,
     .experts = {.count = 128, .per_token = 8}},
    {.type = "qwen2_moe",
     .with_head = "Qwen2MoeForCausalLM",
     .alone = "Qwen2MoeModel",
     .family = ModelFamily::llama,
     .keys = {"model.qkv_bias", "model.experts", "model.experts_per_token",
              "model.normalized_gates", "model.shared_feed_forward", "model.shared_gate"},
     .layers = 24,
     .hidden = 2048,
     .heads = 16,
     .kv_heads = 16,
     .feed_forward = 1408,
     .sequence = 32768,
     .vocab = 151936,
     .windows = Windows::switched_off,
     .has_attention_bias = false,
     .has_head_dim = false,
     .experts = {.count = 60, .per_token = 4, .shared = 5632}},
    {.type = "glm4_moe",
     .with_head = "Glm4MoeForCausalLM",
     .alone = "Glm4MoeModel",
     .family = ModelFamily::llama,
     .keys = {"model.qk_norm", "model.experts", "model.experts_per_token", "model.normalized_gates",
              "model.shared_feed_forward", "model.router_score", "model.router_bias"},
     .layers = 46,
     .heads = 96,
     .kv_heads = 8,
     .feed_forward = 1408,
     .sequence = 131072,
     .vocab = 151552,
     .norm_eps = 1e-5,
     .experts = {.count = 128, .per_token = 8, .aux_loss = 0, .count_key = "n_routed_experts"}},
    {.type = "smollm3",
     .with_head = "SmolLM3ForCausalLM",
     .alone = "SmolLM3Model",
     .family = ModelFamily::llama,
     .keys = {"model.no_rope_every"},
     .layers = 36,
     .hidden = 2048,
     .heads = 16,
     .kv_heads = 4,
     .sequence = 32768,
     .vocab = 128256,
     .rope_theta = 2e6,
     .tied = true,
     .windows = Windows::switched_off,
     .has_mlp_bias = true},
    {.type = "granite",
     .with_head = "GraniteForCausalLM",
     .alone = "GraniteModel",
     .family = ModelFamily::llama,
     .keys = {"model.attention_scale", "model.embedding_scale", "model.residual_scale",
              "model.logit_divisor"},
     .has_mlp_bias = true},
    {.type = "olmo2",
     .with_head = "Olmo2ForCausalLM",
     .alone = "Olmo2Model",
     .family = ModelFamily::olmo2,
     .vocab = 50304,
     .norm_eps = 1e-5,
     .has_rope_scaling = false},
    {.type = "olmo3",
     .with_head = "Olmo3ForCausalLM",
     .alone = "Olmo3Model",
     .family = ModelFamily::olmo2,
     .keys = {"model.window", "model.full_attention_every", "model.window_rope_theta"},
     .vocab = 50304,
     .norm_eps = 1e-5,
     .rope_theta = 5e5,
     .windows = Windows::by_layer,
     .full_attention_every = 4},
    {.type = "gemma3_text",
     .with_head = "Gemma3ForCausalLM",
     .alone = "Gemma3TextModel",
     .family = ModelFamily::gemma3,
     .keys = {"model.window", "model.full_attention_every", "model.window_rope_theta",
              "model.attention_scale"},
     .layers = 26,
     .hidden = 2304,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .feed_forward = 9216,
     .sequence = 131072,
     .vocab = 262208,
     .rope_theta = 1e6,
     .tied = true,
     .windows = Windows::by_layer,
     .full_attention_every = 6,
     .pattern_key = "sliding_window_pattern",
     .activation_key = "hidden_activation",
     .activation = "gelu_pytorch_tanh",
     .needs_whole_heads = true},
    {.type = "apertus",
     .with_head = "ApertusForCausalLM",
     .alone = "ApertusModel",
     .family = ModelFamily::apertus,
     .feed_forward = 14336,
     .sequence = 65536,
     .vocab = 131072,
     .norm_eps = 1e-5,
     .rope_theta = 12e6,
     .activation = "xielu",
     .needs_rope = true},
    {.type = "olmoe",
     .with_head = "OlmoeForCausalLM",
     .alone = "OlmoeModel",
     .family = ModelFamily::olmoe,
     .keys = {"model.experts", "model.experts_per_token", "model.normalized_gates"},
     .layers = 16,
     .hidden = 2048,
     .heads = 16,
     .feed_forward = 2048,
     .sequence = 4096,
     .vocab = 50304,
     .norm_eps = 1e-5,
     .needs_whole_heads = true,
     .has_head_dim = false,
     .experts = {.count = 64, .per_token = 8, .aux_loss = 0.01, .width_key = "intermediate_size"}},
    {.type = "mixtral",
     .with_head = "MixtralForCausalLM",
     .alone = "MixtralModel",
     .family = ModelFamily::mixtral,
     .keys = {"model.window", "model.experts", "model.experts_per_token"},
     .kv_heads = 8,
     .feed_forward = 14336,
     .sequence = 131072,
     .window = 0,
     .norm_eps = 1e-5,
     .rope_theta = 1e6,
     .windows = Windows::all,
     .has_attention_bias = false,
     .experts = {.count = 8, .per_token = 2, .width_key = "intermediate_size"}}};

/// What a class lacks for rotary positions in layers with a window. In transformers 4 they are not
/// scaled, and those of OLMo 3 have the base of the other layers.
std::string missing_rotation(const ModelClass& one, const deck::Model& model) {
  if (one.windows != Windows::by_layer || model.window == 0) return "";
  const double own = model.window_rope_theta;
  if (own == 0 && model.rope_scaling != deck::RopeScaling::none)
    return fmt::format("model.rope_scaling = \"{}\" in layers with model.window",
                       name_of(model.rope_scaling));
  if (own != 0 && own != model.rope_theta && one.family == ModelFamily::olmo2)
    return fmt::format("model.window_rope_theta = {} unlike model.rope_theta = {}", own,
                       model.rope_theta);
  return "";
}

/// What a class of the model's family lacks to compute the model; empty if nothing.
std::vector<std::string> lacking(const ModelClass& one, const deck::Model& model) {
  std::vector<std::string> found;
  for (const char* path : special_keys) {
    const deck::Key& key = *deck::find_key(path);
    const deck::Value value = deck::model_value(key, model);
    const bool is_default = value == deck::model_value(key, deck::Model());
    if (!is_default && !one.has(path))
      found.push_back(fmt::format("{} = {}", path, as_toml(key, value)));
  }
  if (!one.has_rope_scaling && model.rope_scaling != deck::RopeScaling::none)
    found.push_back(fmt::format("model.rope_scaling = \"{}\"", name_of(model.rope_scaling)));
  const std::string rotation = missing_rotation(one, model);
  if (!rotation.empty()) found.push_back(rotation);
  if (one.needs_whole_heads && model.hidden % model.heads != 0)
    found.push_back(fmt::format("model.hidden = {} with model.heads = {}, which does not divide it",
                                model.hidden, model.heads));
  if (!one.has_head_dim && model.head_dim * model.heads != model.hidden)
    found.push_back(fmt::format("model.head_dim = {}, which is not model.hidden / model.heads",
                                model.head_dim));
  if (one.family == ModelFamily::gemma3 && query_scalar(model) == 0)
    found.push_back(fmt::format("model.attention_scale = {}, which is not 1 / sqrt(an integer)",
                                model.attention_scale));
  return found;
}

/// The flags that a class always sets, and the model does not.
std::vector<std::string> needed(const ModelClass& one, const deck::Model& model) {
  std::vector<std::string> found;
  for (const auto& [path, is_set] :
       {std::pair("model.qkv_bias", model.qkv_bias), std::pair("model.qk_norm", model.qk_norm),
        std::pair("model.shared_gate", model.shared_gate),
        std::pair("model.router_bias", model.router_bias)})
    if (one.has(path) && !is_set) found.push_back(fmt::format("{} = true", path));
  if (one.has("model.router_score") && model.router_score != deck::RouterScore::sigmoid)
    found.emplace_back("model.router_score = \"sigmoid\"");
  if (!one.has("model.shared_feed_forward")) return found;
  if (model.shared_feed_forward == 0) {
    found.emplace_back("model.shared_feed_forward above 0");
  } else if (one.experts.shared == 0 && model.shared_feed_forward % model.feed_forward != 0) {
    found.push_back(
        fmt::format("model.shared_feed_forward to be a multiple of model.feed_forward = {}",
                    model.feed_forward));
  }
  return found;
}

/// Why a class of the model's family does not compute the model; empty if it does.
std::string objection(const ModelClass& one, const deck::Model& model) {
  const std::vector<std::string> lacks = lacking(one, model), needs = needed(one, model);
  if (lacks.empty() && needs.empty()) return "";
  std::string text = one.with_head;
  if (!lacks.empty()) text += fmt::format(" lacks {}", fmt::join(lacks, ", "));
  if (!needs.empty())
    text += fmt::format("{} needs {}", lacks.empty() ? "" : ", and", fmt::join(needs, ", "));
  return text;
}

/// Whether both have experts, or neither. A class with a shared expert is far from a model that has
/// none and that losses balance.
bool is_of_kind(const ModelClass& one, const deck::Model& model) {
  if (one.has("model.shared_feed_forward") && model.shared_feed_forward == 0 &&
      !model.router_bias && model.router_score == deck::RouterScore::softmax)
    return false;
  return (one.experts.count > 0) == (model.experts > 0);
}

/// The classes that compute the model in another family than its own. Only mixtures without norms
/// of queries and keys have one.
std::vector<std::string> in_other_families(const deck::Model& model) {
  std::vector<std::string> found;
  if (model.family != ModelFamily::llama || model.experts == 0) return found;
  for (const ModelClass& one : classes)
    if (one.family == ModelFamily::mixtral && objection(one, model).empty())
      found.push_back(
          fmt::format("{} needs model.family = \"{}\"", one.with_head, name_of(one.family)));
  return found;
}

/// The class of a model, or why each class of its family does not compute it.
struct ClassSearch {
  const ModelClass* type = nullptr;
  std::vector<std::string> objections{};
};

ClassSearch find_class(const deck::Model& model) {
  const deck::Model plain = deck::with_default_scales(model);
  ClassSearch found;
  for (const ModelClass& one : classes) {
    if (one.family != model.family || !is_of_kind(one, model)) continue;
    const std::string reason = objection(one, plain);
    if (reason.empty()) return {&one};
    found.objections.push_back(reason);
  }
  std::ranges::copy(in_other_families(plain), std::back_inserter(found.objections));
  return found;
}

}  // namespace

bool ModelClass::has(std::string_view deck_key) const {
  return std::ranges::find(keys, deck_key) != keys.end();
}

std::span<const ModelClass> model_classes() { return classes; }

const ModelClass& class_of(const deck::Model& model, const std::string& checkpoint) {
  const ClassSearch found = find_class(model);
  if (found.type != nullptr) return *found.type;
  fail(ExitCode::files, "{}: no class of transformers that kzero writes computes this model:\n  {}",
       printable(checkpoint), fmt::join(found.objections, "\n  "));
}

std::string export_note(const deck::Model& model) {
  if (model.family == ModelFamily::gpt2) return "";
  const ClassSearch found = find_class(model);
  if (found.type != nullptr) return "";
  return fmt::format(
      "kzero convert cannot export this model, because no class of transformers computes it: {}",
      fmt::join(found.objections, "; "));
}

Index query_scalar(const deck::Model& model) {
  if (model.attention_scale == 0) return model.head_dim;
  const double scalar = std::round(1 / (model.attention_scale * model.attention_scale));
  const bool is_exact =
      scalar >= 1 && scalar < 1e9 && std::pow(scalar, -0.5) == model.attention_scale;
  return is_exact ? static_cast<Index>(scalar) : 0;
}

}  // namespace kzero::convert
