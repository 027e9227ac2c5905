#include "convert/names.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "base/float16.hpp"

namespace kzero::convert {

namespace {

/// Gemma3ForConditionalGeneration: as transformers 5 has the names in memory, and as files have
/// them.
constexpr std::string_view gemma_prefixes[] = {"model.language_model.", "language_model.model.",
                                               "language_model.", "model."};
constexpr std::string_view gemma_images[] = {"vision_tower.", "multi_modal_projector."};
constexpr StoredConstant apertus_constants[] = {{"mlp.act_fn.beta", 0.5F},
                                                {"mlp.act_fn.eps", -1e-6F}};

constexpr TensorNames gpt2{
    .prefix = "transformer.",
    .other_prefixes = {},
    .embedding = "wte.weight",
    .blocks = "h.",
    .constant_endings = {".attn.bias", ".attn.masked_bias"},
    .constants = {},
    .other_parts = {},
    .unchecked =
        "the number of heads, the activation, the scale of attention and the epsilon of "
        "layer normalisation"};

constexpr TensorNames llama{
    .prefix = "model.",
    .other_prefixes = {},
    .embedding = "embed_tokens.weight",
    .blocks = "layers.",
    .constant_endings = {"rotary_emb.inv_freq"},
    .constants = {},
    .other_parts = {},
    .unchecked =
        "the activation, windows, factors, the choice of experts, rotary positions and their "
        "scaling, and the epsilon of the norms"};

constexpr TensorNames gemma3 = [] {
  TensorNames names = llama;
  names.other_prefixes = gemma_prefixes;
  names.other_parts = gemma_images;
  return names;
}();

constexpr TensorNames apertus = [] {
  TensorNames names = llama;
  names.constants = apertus_constants;
  return names;
}();

}  // namespace

std::string TensorNames::plain(const std::string& name) const {
  for (const std::string_view other : other_prefixes)
    if (name.starts_with(other)) return name.substr(other.size());
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool TensorNames::is_constant(std::string_view name) const {
  return std::ranges::any_of(constant_endings, [&](std::string_view ending) {
    return !ending.empty() && name.ends_with(ending);
  });
}

bool TensorNames::is_other_part(std::string_view name) const {
  return std::ranges::any_of(other_parts,
                             [&](std::string_view part) { return name.starts_with(part); });
}

const StoredConstant* TensorNames::constant(std::string_view name) const {
  const auto found = std::ranges::find_if(constants, [&](const StoredConstant& one) {
    return name.starts_with(blocks) && name.ends_with(fmt::format(".{}", one.name));
  });
  return found == constants.end() ? nullptr : &*found;
}

const TensorNames& names_of(deck::ModelFamily family) {
  switch (family) {
    case deck::ModelFamily::gpt2:
      return gpt2;
    case deck::ModelFamily::llama:
    case deck::ModelFamily::olmo2:
    case deck::ModelFamily::olmoe:
    case deck::ModelFamily::mixtral:
      return llama;
    case deck::ModelFamily::gemma3:
      return gemma3;
    case deck::ModelFamily::apertus:
      return apertus;
  }
  fail(
      ExitCode::files,
      "model.family = \"{}\": kzero has no names for this family's tensors in Hugging Face's files",
      name_of(family));
}

std::vector<std::pair<std::string, float>> stored_constants(const deck::Model& model) {
  const TensorNames& names = names_of(model.family);
  std::vector<std::pair<std::string, float>> all;
  for (Index i = 0; i < model.layers; ++i)
    for (const StoredConstant& one : names.constants)
      all.emplace_back(fmt::format("{}{}{}.{}", names.prefix, names.blocks, i, one.name),
                       one.value);
  return all;
}

bool is_stored_as(float constant, float value) {
  return value == constant || value == static_cast<float>(bf16(constant)) ||
         value == static_cast<float>(fp16(constant));
}

}  // namespace kzero::convert
