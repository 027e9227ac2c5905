#include "convert/names.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace kzero::convert {

std::string TensorNames::plain(const std::string& name) const {
  return name.starts_with(prefix) ? name.substr(prefix.size()) : name;
}

bool TensorNames::is_constant(std::string_view name) const {
  return std::ranges::any_of(constant_endings, [&](std::string_view ending) {
    return !ending.empty() && name.ends_with(ending);
  });
}

const TensorNames& names_of(deck::ModelFamily family) {
  static const TensorNames gpt2{
      .prefix = "transformer.",
      .embedding = "wte.weight",
      .constant_endings = {".attn.bias", ".attn.masked_bias"},
      .unchecked =
          "the number of heads, the activation, the scale of attention and the epsilon of "
          "layer normalisation"};
  static const TensorNames llama{
      .prefix = "model.",
      .embedding = "embed_tokens.weight",
      .constant_endings = {"rotary_emb.inv_freq"},
      .unchecked =
          "the activation, rotary positions and their scaling, and the epsilon of the "
          "norms"};
  if (family == deck::ModelFamily::llama) return llama;
  KZERO_REQUIRE(family == deck::ModelFamily::gpt2, ExitCode::files,
                "model.family = \"{}\": kzero has no names for this family's tensors in Hugging "
                "Face's files; it converts \"gpt2\" and \"llama\"",
                name_of(family));
  return gpt2;
}

}  // namespace kzero::convert
