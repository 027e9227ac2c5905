// What Hugging Face's files call the tensors of a family.
#pragma once

#include <string>
#include <string_view>

#include "deck/config.hpp"

namespace kzero::convert {

inline constexpr const char* head_name = "lm_head.weight";

struct TensorNames {
  std::string_view prefix;               // of all but the output projection; files may do without
  std::string_view embedding;            // of tokens, without the prefix
  std::string_view constant_endings[2];  // of what some programs store beside the weights
  std::string_view unchecked;            // what nothing but config.json says about the weights

  /// The name without the prefix.
  std::string plain(const std::string& name) const;
  bool is_constant(std::string_view name) const;
};

const TensorNames& names_of(deck::ModelFamily family);

}  // namespace kzero::convert
