// The names of a family's tensors in Hugging Face's files.
#pragma once

#include <string>
#include <string_view>

#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* head_name = "lm_head.weight";

struct TensorNames {
  std::string_view prefix;               // not for the output projection; files may omit it
  std::string_view embedding;            // of tokens, without the prefix
  std::string_view constant_endings[2];  // of constants that some programs store with the weights
  std::string_view unchecked;            // facts about the weights that only config.json tells

  /// The name without the prefix.
  std::string plain(const std::string& name) const;
  bool is_constant(std::string_view name) const;
};

/// Throws Error(files) for a family that has none. Converters ask before they write anything.
const TensorNames& names_of(deck::ModelFamily family);

}  // namespace kzero::convert
